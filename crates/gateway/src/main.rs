//! The command `lasthopd`.

use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use gateway::doctor::{self, Severity};
use gateway::handover::{self, Before};
use gateway::{install, logs};
use scenario::{Gateway, LabHop, Mode, Style};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::filter::Targets;

/// A gateway that carries the TCP connections of its users over a bad hop.
#[derive(Parser)]
#[command(name = "lasthopd", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How a line of the log looks
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug or trace; also by part, such as warn,gateway=debug
    #[arg(long, global = true, value_name = "LEVEL", env = "RUST_LOG", default_value = "info")]
    log_level: Targets,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum LogFormat {
    /// Words
    #[default]
    Text,
    /// A JSON object
    Json,
}

#[derive(clap::Args)]
struct Configuration {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
}

#[derive(clap::Args)]
struct Socket {
    /// The control socket
    #[arg(long, value_name = "PATH", default_value = gateway::SOCKET)]
    socket: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway until it gets SIGTERM or SIGINT
    Run {
        #[command(flatten)]
        configuration: Configuration,
        #[command(flatten)]
        socket: Socket,
    },
    /// Print the public key of this gateway, for the other one; make the private key if there is none
    Key {
        /// The file of the private key
        #[arg(long, value_name = "FILE", default_value = KEY)]
        file: PathBuf,
    },
    /// Make the key that the base stations and mobile hosts of a network share, or two gateways with `esp`; each of them
    /// needs a copy of the file
    NetworkKey {
        /// The file of the key
        #[arg(long, value_name = "FILE", default_value = NETWORK_KEY)]
        file: PathBuf,
    },
    /// Say what is wrong with a configuration, and change nothing
    Check {
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Say what is wrong with this machine, with the commands that mend it, and change nothing
    Doctor {
        #[command(flatten)]
        configuration: Configuration,
        #[command(flatten)]
        socket: Socket,
        /// As a list in JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the state of the running gateway
    Status {
        #[command(flatten)]
        socket: Socket,
        /// As an object in JSON
        #[arg(long)]
        json: bool,
        /// Show the connections that it carries instead
        #[arg(long)]
        connections: bool,
    },
    /// Show users and connections, each second until q is pressed
    Top {
        #[command(flatten)]
        socket: Socket,
    },
    /// Write TCP and ICMP from and to a user into a file for Wireshark, on both sides of the gateway, until Ctrl-C
    Capture {
        /// The address of the user
        user: IpAddr,
        /// The file, in format pcapng; - for the standard output
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// End after so long
        #[arg(long)]
        seconds: Option<u64>,
        #[command(flatten)]
        socket: Socket,
    },
    /// Let new connections pass unsplit, and wait until the gateway carries none any more
    Drain {
        #[command(flatten)]
        socket: Socket,
        /// Wait at most so long; 0 does not wait
        #[arg(long, value_name = "SECONDS", default_value_t = 300)]
        timeout: u32,
        /// Split connections again
        #[arg(long)]
        undo: bool,
    },
    /// Say that this mobile host is attached to a base station now; without, its default route says so
    Handoff {
        /// The address of the base station
        station: IpAddr,
        #[command(flatten)]
        socket: Socket,
    },
    /// Let the running gateway read its configuration again
    Reload {
        #[command(flatten)]
        socket: Socket,
    },
    /// Let the program that was installed over the running one take its place, with all connections
    Upgrade {
        #[command(flatten)]
        socket: Socket,
    },
    /// Print the scenario file with which the lab predicts what this gateway does on a hop: lasthop run FILE
    Scenario {
        #[command(flatten)]
        configuration: Configuration,
        /// The rate of the hop; without, that of the configuration
        #[arg(long)]
        rate: Option<String>,
        /// The one-way delay of the hop, such as "300 ms"
        #[arg(long)]
        delay: String,
        /// The share of packets that the hop loses
        #[arg(long, default_value = "0")]
        loss: String,
        /// The queue of the hop
        #[arg(long, default_value = "1000 packets")]
        queue: String,
        /// The one-way delay of the networks at both ends
        #[arg(long, default_value = "1 ms")]
        lan_delay: String,
    },
    /// Congestion controls of the lab for the kernel's own TCP, in BPF
    #[cfg(feature = "controls")]
    Cc {
        #[command(subcommand)]
        command: gateway::cc::Command,
    },
    /// Write the unit for systemd, and a configuration to begin with if there is none
    Install {
        /// Below this folder
        #[arg(long, value_name = "FOLDER", default_value = "/")]
        root: PathBuf,
    },
    /// Remove what `install` has written, except what was changed since then, and the controls of `cc load`
    Uninstall {
        /// Below this folder
        #[arg(long, value_name = "FOLDER", default_value = "/")]
        root: PathBuf,
    },
    /// Print the form of the state that an upgrade hands over
    #[command(hide = true)]
    HandoverFormat,
    /// Print the JSON Schema of configurations
    #[command(hide = true)]
    Schema,
    /// Write the manual pages of the program and of its commands
    #[command(hide = true)]
    Man {
        /// Into this folder
        folder: PathBuf,
    },
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Where the private key is.
const KEY: &str = "/etc/lasthop/private.key";

/// Where the key of the network is.
const NETWORK_KEY: &str = "/etc/lasthop/network.key";

/// Where the configuration is.
const CONFIG: &str = "/etc/lasthop/lasthopd.toml";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let format = match arguments.log_format {
        LogFormat::Text => logs::Format::Text,
        LogFormat::Json => logs::Format::Json,
    };
    let result = logs::start(format, arguments.log_level)
        .map_err(|error| error.to_string())
        .and_then(|()| act(arguments.command));
    match result {
        Ok(code) => code,
        Err(message) => {
            // Of several lines: reports with places are for people.
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Run { configuration, socket } => {
            let before = Before::from_environment().map_err(|error| error.to_string())?;
            let gateway = read(&configuration.config)?;
            gateway::run(&gateway, &configuration.config, Some(&socket.socket), before)
                .map_err(|error| error.to_string())?;
        }
        Command::Key { file } => {
            let public = gateway::public_key(&file).map_err(|error| error.to_string())?;
            print(&format!("{public}\n"))?;
        }
        Command::NetworkKey { file } => {
            gateway::make_network_key(&file).map_err(|error| error.to_string())?;
        }
        Command::Check { configuration } => drop(read(&configuration.config)?),
        Command::Doctor { configuration, socket, json } => {
            let gateway = read(&configuration.config)?;
            return examine(&gateway, &socket.socket, json);
        }
        Command::Status { socket, json, connections } => match connections {
            true => print_value(&socket.of(gateway::connections)?, json)?,
            false => print_value(&socket.of(gateway::status)?, json)?,
        },
        Command::Top { socket } => socket.of(gateway::top::show)?,
        Command::Capture { user, output, seconds, socket } => {
            capture(&socket, user, &output, seconds)?;
        }
        Command::Upgrade { socket } => {
            let status = gateway::upgrade(&socket.socket).map_err(|error| error.to_string())?;
            let carried = status.gauges.get("split_connections").copied().unwrap_or(0);
            print(&format!("lasthopd {} goes on with {carried} connections\n", status.version))?;
        }
        Command::HandoverFormat => print(&format!("{}\n", handover::format()))?,
        Command::Drain { socket, timeout, undo } => return drain(&socket, timeout, undo),
        Command::Handoff { station, socket } => {
            socket.of(|path| gateway::handoff(path, station))?;
        }
        Command::Reload { socket } => socket.of(gateway::reload)?,
        Command::Scenario { configuration, rate, delay, loss, queue, lan_delay } => {
            let gateway = read(&configuration.config)?;
            let by_hand = match gateway.mode() {
                Mode::Station | Mode::Mobile => Some("station"),
                Mode::Spep => Some("spep"),
                Mode::Notify => Some("corruption-reporter"),
                Mode::Spoof | Mode::Split | Mode::Pair => None,
            };
            if let Some(name) = by_hand {
                return Err(format!(
                    "no scenario follows from this mode: write one with the lab's box `{name}`"
                ));
            }
            if rate.is_none() && gateway.rate().is_none() {
                return Err(
                    "the configuration has no rate of the hop: give it with --rate".to_owned()
                );
            }
            let source = gateway::source(&configuration.config)?;
            let hop = LabHop { rate, delay, loss, queue, lan_delay };
            let text = Gateway::scenario(&source, &hop).map_err(|error| error.render(style()))?;
            print(&text)?;
        }
        #[cfg(feature = "controls")]
        Command::Cc { command } => congestion_controls(&command)?,
        Command::Install { root } => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            report(install::install(&root, &program))?;
            print(
                "next: name the interfaces in the configuration; then lasthopd doctor, systemctl daemon-reload, systemctl enable --now lasthopd\n",
            )?;
        }
        Command::Uninstall { root } => {
            if root == Path::new("/") {
                #[cfg(feature = "controls")]
                print(&gateway::cc::unload_all().map_err(|error| error.to_string())?)?;
                if let rules @ 1.. = clean_up()? {
                    print(&format!("removed {rules} rules of a gateway that was killed\n"))?;
                }
            }
            report(install::uninstall(&root))?;
        }
        Command::Schema => print_json(&Gateway::schema())?,
        Command::Man { folder } => {
            let mut program = Arguments::command().disable_help_subcommand(true);
            // With it, commands know their full names.
            program.build();
            manuals(&program, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "lasthopd",
                &mut std::io::stdout(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "controls")]
fn congestion_controls(command: &gateway::cc::Command) -> Result<(), String> {
    use gateway::cc;
    let failed = |error: cc::Error| error.to_string();
    match command {
        cc::Command::Load { control } => print(&cc::load(control).map_err(failed)?),
        cc::Command::Unload { control, .. } => print(&cc::unload(*control).map_err(failed)?),
        cc::Command::List { json } => {
            let listed = cc::list().map_err(failed)?;
            match json {
                true => print_json(&listed),
                false => print(&listed.iter().map(|one| format!("{one}\n")).collect::<String>()),
            }
        }
    }
}

/// Takes back what a gateway that was killed has left, unless one runs.
fn clean_up() -> Result<usize, String> {
    let socket = Path::new(gateway::SOCKET);
    match gateway::status(socket) {
        Ok(_) => Ok(0),
        Err(_) => gateway::clean_up(socket).map_err(|error| error.to_string()),
    }
}

/// Writes the manual page of a command, and those of its commands.
fn manuals(command: &clap::Command, folder: &Path) -> std::io::Result<()> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    for command in shown {
        manuals(command, folder)?;
    }
    clap_mangen::Man::new(command.clone()).section("8").generate_to(folder)?;
    Ok(())
}

impl Socket {
    /// Asks the gateway.
    fn of<T>(&self, ask: impl FnOnce(&Path) -> std::io::Result<T>) -> Result<T, String> {
        ask(&self.socket).map_err(|error| error.to_string())
    }
}

/// Writes packets until a signal or the time ends it.
fn capture(
    socket: &Socket,
    user: IpAddr,
    output: &Path,
    seconds: Option<u64>,
) -> Result<(), String> {
    let capture = socket.of(|path| gateway::capture(path, user))?;
    let failed = |error| format!("{}: {error}", output.display());
    let file: Box<dyn Write> = match output.as_os_str() == "-" {
        true => Box::new(std::io::stdout()),
        false => Box::new(File::create(output).map_err(failed)?),
    };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let by_signal = capture.stopper().map_err(failed)?;
    let by_time = capture.stopper().map_err(failed)?;
    std::thread::spawn(move || signals.forever().for_each(|_| by_signal.stop()));
    if let Some(seconds) = seconds {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(seconds));
            by_time.stop();
        });
    }
    let captured = capture.write(BufWriter::new(file)).map_err(failed)?;
    eprintln!("{} packets; {} are missing", captured.packets, captured.missing);
    Ok(())
}

/// Exit code 1 says that connections are left.
fn drain(socket: &Socket, timeout: u32, undo: bool) -> Result<ExitCode, String> {
    socket.of(|path| gateway::drain(path, undo))?;
    if undo {
        return Ok(ExitCode::SUCCESS);
    }
    for second in 0..=timeout {
        if second > 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
        let left = socket.of(gateway::connections)?.total;
        if left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        if second == timeout {
            print(&format!("{left} connections are left\n"))?;
        }
    }
    Ok(ExitCode::FAILURE)
}

/// The configuration in a file, or a report of what is wrong.
fn read(path: &Path) -> Result<Gateway, String> {
    gateway::read(path, style())
}

/// How reports look.
fn style() -> Style {
    if std::io::stderr().is_terminal() { Style::Coloured } else { Style::Plain }
}

fn examine(gateway: &Gateway, socket: &Path, json: bool) -> Result<ExitCode, String> {
    let running = gateway::status(socket).is_ok();
    let findings = doctor::examine(gateway, running);
    let is_well = findings.iter().all(|finding| finding.severity < Severity::Error);
    if json {
        print_json(&findings)?;
    } else {
        let mut text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        text.push_str(match (is_well, running) {
            (true, true) => "lasthopd runs, and nothing is wrong\n",
            (true, false) => "lasthopd can run\n",
            (false, true) => "lasthopd runs, but something is wrong\n",
            (false, false) => "lasthopd cannot run\n",
        });
        print(&text)?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(done: Result<Vec<install::Done>, install::Error>) -> Result<(), String> {
    let done = done.map_err(|error| error.to_string())?;
    print(&done.iter().map(|done| format!("{done}\n")).collect::<String>())
}

fn print_value<T: serde::Serialize + ToString>(value: &T, json: bool) -> Result<(), String> {
    if json { print_json(value) } else { print(&value.to_string()) }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    print(&format!("{text}\n"))
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| error.to_string()),
    }
}
