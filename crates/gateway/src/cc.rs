//! `lasthopd cc`: the lab's congestion controls for the kernel's own TCP.

use base::Duration;
use base::settings::Span;
use clap::{Args, Subcommand, ValueEnum};
pub use controls::Error;
use controls::{Control, Listed};
use std::fmt::Write as _;
use std::str::FromStr;
use tcp::congestion::{
    Auto, Canit, Cap, ConstantRate, Fast, IncreaseByK, IncreaseFunction, RoundTrip,
};

/// What to do with congestion controls.
#[derive(Subcommand)]
pub enum Command {
    /// Load a control, for all network namespaces, until it is unloaded or the machine starts again
    Load {
        /// Which
        #[command(subcommand)]
        control: Load,
    },
    /// Show the controls that are loaded, with their settings and about how many sockets and sysctls use each
    List {
        /// As a list in JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a control; connections that use it keep it until they end
    Unload {
        /// Which
        #[arg(value_enum, required_unless_present = "all")]
        control: Option<Name>,
        /// All that are loaded
        #[arg(long, conflicts_with = "control")]
        all: bool,
    },
}

/// A control, with its settings.
#[derive(Subcommand)]
pub enum Load {
    /// K segments per window: lasthop_byk
    IncreaseByK {
        /// The settings
        #[command(flatten)]
        k: K,
        /// How acknowledgments count
        #[command(flatten)]
        count: Count,
    },
    /// c r² segments per window, with the round trip r: lasthop_rate
    ConstantRate {
        /// The settings
        #[command(flatten)]
        c: C,
        /// The round trip and the cap
        #[command(flatten)]
        common: Common,
        /// How acknowledgments count
        #[command(flatten)]
        count: Count,
    },
    /// r/NIT segments per window, with the round trip r: lasthop_canit
    Canit {
        /// The settings
        #[command(flatten)]
        nit: Nit,
        /// The round trip and the cap
        #[command(flatten)]
        common: Common,
        /// How acknowledgments count
        #[command(flatten)]
        count: Count,
    },
    /// Another one's growth while the bottleneck of the path has room, else the standard's: lasthop_auto
    Auto {
        /// The other one
        #[arg(long, value_enum, default_value = "canit")]
        fast: FastName,
        /// The settings of increase-by-k
        #[command(flatten)]
        k: K,
        /// The settings of constant-rate
        #[command(flatten)]
        c: C,
        /// The settings of canit
        #[command(flatten)]
        nit: Nit,
        /// The round trip and the cap
        #[command(flatten)]
        common: Common,
        /// How acknowledgments count
        #[command(flatten)]
        count: Count,
    },
    /// A window that congestion reduces to what the path holds, as measured: lasthop_west
    #[command(name = "westwood+")]
    WestwoodPlus,
}

/// The setting of increase-by-k.
#[derive(Args)]
pub struct K {
    /// Segments per window, with increase-by-k
    #[arg(long, default_value_t = IncreaseByK::DEFAULT.k)]
    k: f64,
}

/// The setting of constant-rate.
#[derive(Args)]
pub struct C {
    /// Segments per second squared, with constant-rate
    #[arg(long, default_value_t = ConstantRate::DEFAULT.c)]
    c: f64,
}

/// The setting of canit.
#[derive(Args)]
pub struct Nit {
    /// The interval in which a window grows by a segment, such as "30 ms", with canit
    #[arg(long, default_value_t = Canit::DEFAULT.nit, value_parser = span)]
    nit: Span,
}

/// The settings of constant-rate and canit.
#[derive(Args)]
pub struct Common {
    /// The round trip of the formula, such as "200 ms"; without, the smoothed one of the connection
    #[arg(long)]
    rtt: Option<Duration>,
    /// The largest increase per acknowledgment, segments; without, there is none
    #[arg(long)]
    cap: Option<f64>,
}

/// How acknowledgments count.
#[derive(Args)]
pub struct Count {
    /// Grow once per acknowledgment, as the publications do, instead of once per acknowledged segment, as Linux does
    #[arg(long)]
    per_ack: bool,
}

/// The name of a control.
#[derive(Clone, Copy, ValueEnum)]
pub enum Name {
    /// lasthop_byk
    IncreaseByK,
    /// lasthop_rate
    ConstantRate,
    /// lasthop_canit
    Canit,
    /// lasthop_auto
    Auto,
    /// lasthop_west
    #[value(name = "westwood+")]
    WestwoodPlus,
}

/// The name of the function that auto uses while there is room.
#[derive(Clone, Copy, ValueEnum)]
pub enum FastName {
    /// K segments per window
    IncreaseByK,
    /// c r² segments per window
    ConstantRate,
    /// r/NIT segments per window
    Canit,
}

fn span(text: &str) -> Result<Span, <Duration as FromStr>::Err> {
    text.parse().map(Span)
}

impl K {
    fn function(&self) -> IncreaseByK {
        IncreaseByK { k: self.k }
    }
}

impl C {
    fn function(&self, common: &Common) -> ConstantRate {
        ConstantRate { c: self.c, rtt: common.rtt(), cap: Cap(common.cap) }
    }
}

impl Nit {
    fn function(&self, common: &Common) -> Canit {
        Canit { nit: self.nit, rtt: common.rtt(), cap: Cap(common.cap) }
    }
}

impl Common {
    fn rtt(&self) -> RoundTrip {
        self.rtt.map_or(RoundTrip::Smoothed, RoundTrip::Given)
    }
}

impl Load {
    fn control(&self) -> (Control, bool) {
        match self {
            Load::IncreaseByK { k, count } => (Control::IncreaseByK(k.function()), count.per_ack),
            Load::ConstantRate { c, common, count } => {
                (Control::ConstantRate(c.function(common)), count.per_ack)
            }
            Load::Canit { nit, common, count } => {
                (Control::Canit(nit.function(common)), count.per_ack)
            }
            Load::Auto { fast, k, c, nit, common, count } => {
                let fast = match fast {
                    FastName::IncreaseByK => Fast::IncreaseByK(k.function()),
                    FastName::ConstantRate => Fast::ConstantRate(c.function(common)),
                    FastName::Canit => Fast::Canit(nit.function(common)),
                };
                (Control::Auto(Auto::new(fast)), count.per_ack)
            }
            Load::WestwoodPlus => (Control::WestwoodPlus, false),
        }
    }
}

impl Name {
    fn control(self) -> Control {
        match self {
            Name::IncreaseByK => Control::IncreaseByK(IncreaseByK::DEFAULT),
            Name::ConstantRate => Control::ConstantRate(ConstantRate::DEFAULT),
            Name::Canit => Control::Canit(Canit::DEFAULT),
            Name::Auto => Control::Auto(Auto::DEFAULT),
            Name::WestwoodPlus => Control::WestwoodPlus,
        }
    }
}

/// Loads a control, and says how to use it.
///
/// # Errors
/// As [`controls::load`].
pub fn load(load: &Load) -> Result<String, Error> {
    let (control, per_ack) = load.control();
    let pinned = controls::load(&control, per_ack)?;
    let mut text = String::new();
    if pinned.mounted {
        text.push_str("mounted the BPF file system at /sys/fs/bpf\n");
    }
    let name = control.kernel_name();
    let _ = writeln!(text, "loaded {name} ({control}), pinned at {}", pinned.path.display());
    let _ = writeln!(
        text,
        "use it: sysctl net.ipv4.tcp_congestion_control={name}, or iperf3 -C {name}"
    );
    Ok(text)
}

/// Removes a control, without a name all that are loaded, and says how many sockets use it still.
///
/// # Errors
/// As [`controls::unload`].
pub fn unload(name: Option<Name>) -> Result<String, Error> {
    name.map_or_else(unload_all, |name| unload_one(&name.control()))
}

/// Removes all controls that are loaded.
///
/// # Errors
/// As [`controls::unload`].
pub fn unload_all() -> Result<String, Error> {
    let mut text = String::new();
    for control in Control::ALL {
        match unload_one(&control) {
            Ok(done) => text.push_str(&done),
            Err(Error::NotLoaded(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

fn unload_one(control: &Control) -> Result<String, Error> {
    let users = controls::unload(control)?;
    let name = control.kernel_name();
    Ok(match users {
        0 => format!("unloaded {name}\n"),
        _ => format!(
            "unloaded {name}; {users} sockets or sysctls of network namespaces keep it until they end or are changed\n"
        ),
    })
}

/// The controls that are loaded.
///
/// # Errors
/// As [`controls::list`].
pub fn list() -> Result<Vec<Listed>, Error> {
    controls::list()
}
