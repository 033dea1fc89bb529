//! What would keep a gateway from its work, and the commands that mend it.
//!
//! `lasthopd doctor` shows all that is found, and `lasthopd run` refuses to start on what is an error here.

mod firewall;
mod iptables;
mod mode;
mod rules;
mod spep;
mod system;
mod tracking;
mod ways;

use crate::{marking, network};
use live::Netlink;
use live::netlink::Family;
use scenario::{Gateway, Mode};
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It is as it should be.
    Fine,
    /// It works, but could be better.
    Advice,
    /// The gateway does not start, or does not carry packets.
    Error,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at.
    pub about: String,
    /// What was found.
    pub message: String,
    /// The command that mends it.
    pub mend: Option<String>,
}

impl Finding {
    fn fine(about: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Fine, about, message, None)
    }

    fn advice(
        about: impl Into<String>,
        message: impl Into<String>,
        mend: Option<String>,
    ) -> Finding {
        Finding::new(Severity::Advice, about, message, mend)
    }

    fn error(
        about: impl Into<String>,
        message: impl Into<String>,
        mend: Option<String>,
    ) -> Finding {
        Finding::new(Severity::Error, about, message, mend)
    }

    fn new(
        severity: Severity,
        about: impl Into<String>,
        message: impl Into<String>,
        mend: Option<String>,
    ) -> Finding {
        Finding { severity, about: about.into(), message: message.into(), mend }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Fine => "fine",
            Severity::Advice => "advice",
            Severity::Error => "error",
        };
        write!(f, "{word:<7} {}: {}", self.about, self.message)?;
        match &self.mend {
            Some(mend) => write!(f, "\n        mend: {mend}"),
            None => Ok(()),
        }
    }
}

/// What is an error, and so keeps a gateway from starting.
#[derive(Debug, Error)]
#[error("{}", .0.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Unfit(pub Vec<Finding>);

/// The interfaces of a gateway, those of the LAN first.
fn interfaces(gateway: &Gateway) -> impl Iterator<Item = &String> {
    gateway.lan.iter().chain([&gateway.wan])
}

/// Looks at the machine, in the network namespace of the calling thread, and changes nothing. With
/// `running`, this gateway runs already, and what it has taken is its own.
#[must_use]
pub fn examine(gateway: &Gateway, running: bool) -> Vec<Finding> {
    let mut findings = vec![system::capability()];
    let is_host = gateway.mode() == Mode::Mobile;
    let mut has_devices = true;
    // Whether packets are to pass the gateway.
    let is_on_path = !network::rules(gateway).is_empty();
    match Netlink::open() {
        Ok(netlink) => {
            has_devices = marking::has_devices(&netlink, gateway, running);
            if has_devices {
                findings.extend(system::devices());
                findings.extend(system::control_queues(&netlink, gateway, running));
            }
            // A mobile host forwards between its agent's devices alone, which the agent sees to.
            if !is_host {
                findings.extend(system::forwarding(&netlink, gateway));
            }
            findings.extend(system::links(&netlink, gateway));
            if has_devices {
                findings.extend(examine_devices(&netlink, gateway, running));
            }
            // What is wrong so far leads packets astray.
            let is_well = findings.iter().all(|finding| finding.severity < Severity::Error);
            if !is_host && has_devices && is_on_path && is_well {
                findings.extend(ways::examine(&netlink, gateway, running));
            }
        }
        Err(error) => findings.push(Finding::error("netlink", error.to_string(), None)),
    }
    if !running {
        findings.extend(system::metrics(gateway));
    }
    findings.extend(mode::examine(gateway, running));
    findings.extend(spep::examine(gateway, has_devices, running));
    if has_devices {
        findings.extend(firewall::examine(gateway));
    }
    findings
}

/// What leads packets to the devices of a gateway.
fn examine_devices(netlink: &Netlink, gateway: &Gateway, running: bool) -> Vec<Finding> {
    let is_ipv4 = network::families(gateway).any(|family| family == Family::V4);
    let mut findings: Vec<_> = is_ipv4.then(system::reverse_paths).flatten().into_iter().collect();
    if !network::rules(gateway).is_empty() {
        findings.extend(system::rules(netlink, gateway));
    }
    findings.extend(match running {
        true => system::own(netlink, gateway),
        false => system::taken(netlink),
    });
    findings
}

/// Refuses what `examine` calls an error.
///
/// # Errors
/// All of it.
pub(crate) fn admit(gateway: &Gateway) -> Result<(), Unfit> {
    let mut findings = examine(gateway, false);
    findings.retain(|finding| finding.severity == Severity::Error);
    if findings.is_empty() { Ok(()) } else { Err(Unfit(findings)) }
}
