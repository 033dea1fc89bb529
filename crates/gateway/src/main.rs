//! The command `lasthopd`.

use clap::{Parser, Subcommand};
use gateway::Daemon;
use scenario::{Gateway, Source, Style};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::{error, info};

/// A gateway that carries the TCP connections of its users over a bad hop.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway until it gets SIGTERM or SIGINT
    Run {
        /// The configuration
        #[arg(long, value_name = "FILE", default_value = CONFIG)]
        config: PathBuf,
    },
    /// Print the public key of this gateway, for the other one; make the private key if there is none
    Key {
        /// The file of the private key
        #[arg(long, value_name = "FILE", default_value = KEY)]
        file: PathBuf,
    },
    /// Say what is wrong with a configuration, and change nothing
    Check {
        /// The configuration
        #[arg(long, value_name = "FILE", default_value = CONFIG)]
        config: PathBuf,
    },
}

/// Where the private key is.
const KEY: &str = "/etc/lasthop/private.key";

/// Where the configuration is.
const CONFIG: &str = "/etc/lasthop/lasthopd.toml";

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let result = match Arguments::parse().command {
        Command::Run { config } => read(&config).and_then(|gateway| run(&gateway)),
        Command::Check { config } => read(&config).map(drop),
        Command::Key { file } => gateway::public_key(&file)
            .map(|public| println!("{public}"))
            .map_err(|error| error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// The configuration in a file, or a report of what is wrong.
fn read(path: &PathBuf) -> Result<Gateway, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("reading {shown}: {error}"))?;
    let style = if std::io::stderr().is_terminal() { Style::Coloured } else { Style::Plain };
    Gateway::read(&Source::new(text, shown.to_string())).map_err(|error| error.render(style))
}

fn run(gateway: &Gateway) -> Result<(), String> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| error.to_string())?;
    let daemon = Daemon::start(gateway).map_err(|error| error.to_string())?;
    info!(lan = ?gateway.lan, wan = gateway.wan, "running");
    let signal = signals.forever().next();
    if !daemon.is_running() {
        error!("a device was removed");
    }
    info!(signal, "ending");
    daemon.stop();
    Ok(())
}
