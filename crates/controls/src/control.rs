//! The controls, and how the kernel gets one.

use crate::settings::Settings;
use crate::{Error, kernel};
use base::settings::Span;
use libbpf_rs::{Link, MapCore, MapHandle, MapType, ObjectBuilder};
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use tcp::congestion::{
    Auto, Canit, Cap, ConstantRate, Fast, IncreaseByK, IncreaseFunction, RoundTrip,
};

/// A congestion control with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "control", rename_all = "kebab-case")]
pub enum Control {
    /// K segments per window.
    IncreaseByK(IncreaseByK),
    /// c r² segments per window.
    ConstantRate(ConstantRate),
    /// r/NIT segments per window.
    Canit(Canit),
    /// Another function while the bottleneck has room, else the standard's.
    Auto(Auto),
    /// Bandwidth estimated once a round trip; congestion reduces the window to what the path holds.
    #[serde(rename = "westwood+")]
    WestwoodPlus,
}

/// A compiled program.
macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".o"))
    };
}

impl Control {
    /// All of them, with the lab's defaults.
    pub const ALL: [Control; 5] = [
        Control::IncreaseByK(IncreaseByK::DEFAULT),
        Control::ConstantRate(ConstantRate::DEFAULT),
        Control::Canit(Canit::DEFAULT),
        Control::Auto(Auto::DEFAULT),
        Control::WestwoodPlus,
    ];

    /// The name in scenario files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Control::IncreaseByK(_) => "increase-by-k",
            Control::ConstantRate(_) => "constant-rate",
            Control::Canit(_) => "canit",
            Control::Auto(_) => "auto",
            Control::WestwoodPlus => "westwood+",
        }
    }

    /// The name in the kernel: for `TCP_CONGESTION`, the sysctl and `iperf3 -C`.
    #[must_use]
    pub fn kernel_name(&self) -> &'static str {
        match self {
            Control::IncreaseByK(_) => "lasthop_byk",
            Control::ConstantRate(_) => "lasthop_rate",
            Control::Canit(_) => "lasthop_canit",
            Control::Auto(_) => "lasthop_auto",
            Control::WestwoodPlus => "lasthop_west",
        }
    }

    fn object(&self) -> &'static [u8] {
        match self {
            Control::IncreaseByK(_) => object!("increase_by_k"),
            Control::ConstantRate(_) => object!("constant_rate"),
            Control::Canit(_) => object!("canit"),
            Control::Auto(_) => object!("auto"),
            Control::WestwoodPlus => object!("westwood_plus"),
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Control::IncreaseByK(one) => write_increase_by_k(f, one),
            Control::ConstantRate(one) => write_constant_rate(f, one),
            Control::Canit(one) => write_canit(f, one),
            Control::Auto(auto) => {
                f.write_str("auto: ")?;
                match &auto.fast {
                    Fast::IncreaseByK(one) => write_increase_by_k(f, one),
                    Fast::ConstantRate(one) => write_constant_rate(f, one),
                    Fast::Canit(one) => write_canit(f, one),
                }
            }
            Control::WestwoodPlus => f.write_str("westwood+"),
        }
    }
}

fn write_increase_by_k(f: &mut fmt::Formatter<'_>, one: &IncreaseByK) -> fmt::Result {
    write!(f, "increase-by-k, k = {}", one.k)
}

fn write_constant_rate(f: &mut fmt::Formatter<'_>, one: &ConstantRate) -> fmt::Result {
    write!(f, "constant-rate, c = {}", one.c)?;
    write_common(f, one.rtt, one.cap)
}

fn write_canit(f: &mut fmt::Formatter<'_>, one: &Canit) -> fmt::Result {
    write!(f, "canit, nit = {}", one.nit)?;
    write_common(f, one.rtt, one.cap)
}

fn write_common(f: &mut fmt::Formatter<'_>, rtt: RoundTrip, cap: Cap) -> fmt::Result {
    match rtt {
        RoundTrip::Given(given) => write!(f, ", rtt = {}", Span(given))?,
        RoundTrip::Smoothed | RoundTrip::Propagation => f.write_str(", rtt = smoothed")?,
    }
    cap.0.map_or(Ok(()), |cap| write!(f, ", cap = {cap}"))
}

/// A control that the kernel has. Dropped, the kernel has it no more, unless it was pinned; connections keep it
/// until they end.
#[derive(Debug)]
pub struct Loaded {
    link: Link,
    calls: Option<MapHandle>,
}

impl Loaded {
    /// Gives a control to the kernel. A window grows by one increase per acknowledged segment, as the kernel's own
    /// controls count; with `per_ack`, by one per acknowledgment, as RFC 5681 and the publications do. With `record`,
    /// each call is written to [`Loaded::calls`]. Westwood+ ignores `per_ack`.
    ///
    /// # Errors
    /// If a setting cannot be represented, the process lacks rights, or the kernel refuses the program or has a
    /// control of this name.
    pub fn new(control: &Control, per_ack: bool, record: bool) -> Result<Loaded, Error> {
        let name = control.kernel_name();
        let mut settings = Settings::of(control, per_ack)?;
        settings.record = record.into();
        kernel::check()?;
        let failed = |error: libbpf_rs::Error| kernel::refusal(name, &error);
        kernel::keep_warnings();
        let mut object = ObjectBuilder::default().open_memory(control.object()).map_err(failed)?;
        for mut map in object.maps_mut() {
            match map.map_type() {
                MapType::RingBuf => map.set_autocreate(record).map_err(failed)?,
                MapType::Array => map.set_initial_value(&settings.to_bytes()).map_err(failed)?,
                _ => {}
            }
        }
        let mut object = object.load().map_err(failed)?;
        let calls = object.maps().find(|map| record && map.map_type() == MapType::RingBuf);
        let calls = calls.map(|map| MapHandle::try_from(&map)).transpose().map_err(failed)?;
        let is_control = |map: &libbpf_rs::MapMut<'_>| map.name() == OsStr::new(name);
        let Some(mut map) = object.maps_mut().find(is_control) else {
            return Err(Error::Read { what: "the program", problem: "no control".to_owned() });
        };
        let link = map.attach_struct_ops().map_err(failed)?;
        Ok(Loaded { link, calls })
    }

    /// The ring buffer with the recorded calls, each a [`crate::Call`], if they are recorded.
    #[must_use]
    pub fn calls(&self) -> Option<&MapHandle> {
        self.calls.as_ref()
    }

    /// Makes the kernel keep the control, until the file at this path of a BPF file system is removed.
    pub(crate) fn pin(&mut self, path: &Path) -> Result<(), libbpf_rs::Error> {
        self.link.pin(path)
    }
}
