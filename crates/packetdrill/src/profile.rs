//! Profiles: the stack whose behaviour scripts expect, chosen by `--so_flags`.

use base::Duration;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use std::path::Path;
use std::{env, fs};
use tcp::congestion::Congestion;
use tcp::{Config, EcnMode, InitialWindow, ReceiveWindow, Recovery, Reduction, Rto, Validation};
use thiserror::Error;

/// A stack whose settings are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Linux at the start of a connection, when it acknowledges every segment; with the `sysctl`
    /// settings of the network namespace.
    Linux,
    /// FreeBSD with its defaults.
    FreeBsd,
}

impl FromStr for Profile {
    type Err = ();

    fn from_str(name: &str) -> Result<Profile, ()> {
        match name {
            "linux" => Ok(Profile::Linux),
            "freebsd" => Ok(Profile::FreeBsd),
            _ => Err(()),
        }
    }
}

/// The value of `--so_flags`: `key=value`, separated by commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// `profile`: `linux` (the default) or `freebsd`.
    pub profile: Profile,
    /// `mtu`: of the only interface, bytes (1500).
    pub mtu: u16,
    /// `local4`: our address for IPv4 (192.168.0.1).
    pub local4: Ipv4Addr,
    /// `local6`: our address for IPv6 (fd3d:a0b:17d6::1).
    pub local6: Ipv6Addr,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            profile: Profile::Linux,
            mtu: 1500,
            local4: Ipv4Addr::new(192, 168, 0, 1),
            local6: Ipv6Addr::new(0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 1),
        }
    }
}

/// An error in `--so_flags`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlagsError {
    /// There is no such key.
    #[error("--so_flags: unknown key `{0}`: expected profile, mtu, local4 or local6")]
    Key(String),
    /// The value is not one of the key's.
    #[error("--so_flags: `{value}` for `{key}`: expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was found.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
}

/// An IPv6 link's least MTU is 1280 (RFC 8200 §5); an IPv4 one's could be 68, but headers with all
/// options would not fit.
fn mtu(text: &str) -> Option<u16> {
    text.parse().ok().filter(|mtu| *mtu >= 576)
}

impl FromStr for Setup {
    type Err = FlagsError;

    fn from_str(flags: &str) -> Result<Setup, FlagsError> {
        let mut setup = Setup::default();
        for pair in flags.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let wrong =
                |key, expected| FlagsError::Value { key, value: value.to_owned(), expected };
            match key {
                "profile" => {
                    let profile = value.parse();
                    setup.profile = profile.map_err(|()| wrong("profile", "linux or freebsd"))?;
                }
                "mtu" => setup.mtu = mtu(value).ok_or_else(|| wrong("mtu", "576 to 65535"))?,
                "local4" => {
                    let address = value.parse();
                    setup.local4 = address.map_err(|_| wrong("local4", "an IPv4 address"))?;
                }
                "local6" => {
                    let address = value.parse();
                    setup.local6 = address.map_err(|_| wrong("local6", "an IPv6 address"))?;
                }
                _ => return Err(FlagsError::Key(key.to_owned())),
            }
        }
        Ok(setup)
    }
}

impl Setup {
    /// Our address in the version of IP of `peer`.
    #[must_use]
    pub fn local(&self, is_ipv6: bool) -> IpAddr {
        if is_ipv6 { self.local6.into() } else { self.local4.into() }
    }

    /// The settings of a new connection.
    pub(crate) fn config(&self, is_ipv6: bool) -> Config {
        let headers = if is_ipv6 { 60 } else { 40 };
        let config = Config { mss: self.mtu - headers, ..Config::default() };
        match self.profile {
            Profile::Linux => linux(config),
            Profile::FreeBsd => free_bsd(config),
        }
    }

    /// The settings of connections that a listener accepts, made of those of a new connection.
    pub(crate) fn accepting(&self, config: Config) -> Config {
        let ecn = match self.profile {
            Profile::Linux => accepted_ecn(sysctl("tcp_ecn", ACCEPT_ECN)),
            Profile::FreeBsd => config.ecn,
        };
        Config { ecn, ..config }
    }

    /// Whether connections may be opened by Fast Open.
    pub(crate) fn offers_fast_open(&self) -> bool {
        self.profile == Profile::Linux && sysctl("tcp_fastopen", OFFER_FAST_OPEN) & 1 != 0
    }

    /// Whether a listener accepts Fast Open; `asked` is what its socket says, if anything.
    pub(crate) fn accepts_fast_open(&self, asked: Option<bool>) -> bool {
        let flags = match self.profile {
            Profile::Linux => sysctl("tcp_fastopen", OFFER_FAST_OPEN),
            Profile::FreeBsd => 0,
        };
        flags & 2 != 0 && asked.unwrap_or(flags & 0x400 != 0)
    }

    /// Segments that are handed to the interface at once. Linux takes two as long as it sends less
    /// than some megabytes a second (`tcp_min_tso_segs`).
    pub(crate) fn unit(&self) -> u16 {
        match self.profile {
            Profile::Linux => 2,
            Profile::FreeBsd => 1,
        }
    }

    /// The send buffer: unacknowledged bytes before a writer has to wait.
    pub(crate) fn send_buffer(&self) -> u64 {
        match self.profile {
            Profile::Linux => 256 << 10,
            Profile::FreeBsd => 32 << 10,
        }
    }
}

fn linux(config: Config) -> Config {
    Config {
        receive_window: ReceiveWindow::fixed(sysctl("tcp_rmem", 6 << 20).min(1 << 30) as u32),
        congestion: Congestion::Cubic,
        byte_counting: Some(u32::MAX),
        hystart: false, // Linux has HyStart without the two pluses.
        initial_window: InitialWindow::Segments(10),
        validation: Validation::Half,
        restart_after_idle: sysctl("tcp_slow_start_after_idle", 1) != 0,
        delayed_ack: None,
        rto: Rto {
            minimum: Duration::from_millis(200),
            minimum_variance: Duration::from_millis(200),
            ..Rto::default()
        },
        reduction: Reduction::Prr,
        recovery: match (sysctl("tcp_sack", 1), sysctl("tcp_recovery", 1) & 1) {
            (0, _) => Recovery::NewReno,
            (_, 0) => Recovery::Sack,
            _ => Recovery::Rack,
        },
        frto: sysctl("tcp_frto", 2) != 0,
        timestamps: sysctl("tcp_timestamps", 1) != 0,
        ecn: offered_ecn(sysctl("tcp_ecn", ACCEPT_ECN)),
        ..config
    }
}

/// Linux's default of `tcp_ecn`: ECN is accepted, not offered.
const ACCEPT_ECN: u64 = 2;

/// The environment variable with the directory of settings that the kernel refuses.
const OWN_SETTINGS: &str = "LASTHOP_SYSCTL";

/// Linux's default of `tcp_fastopen`: connections may be opened by Fast Open, listeners do not accept
/// it. 2 permits listeners to accept it, and with 0x400 all do.
const OFFER_FAST_OPEN: u64 = 1;

/// What an active open offers with a value of `tcp_ecn`.
fn offered_ecn(tcp_ecn: u64) -> EcnMode {
    match tcp_ecn {
        1 | 4 => EcnMode::Classic,
        3 => EcnMode::Accurate,
        _ => EcnMode::Off,
    }
}

/// What a passive open accepts with a value of `tcp_ecn`.
fn accepted_ecn(tcp_ecn: u64) -> EcnMode {
    match tcp_ecn {
        1 | 2 => EcnMode::Classic,
        3..=5 => EcnMode::Accurate,
        _ => EcnMode::Off,
    }
}

/// The last number that `/proc/sys/net/ipv4` has under a name, in this network namespace, or a file
/// of that name in the directory `$LASTHOP_SYSCTL`: values that the kernel does not know.
fn sysctl(name: &str, default: u64) -> u64 {
    let own = env::var_os(OWN_SETTINGS).map(|directory| Path::new(&directory).join(name));
    let own = own.and_then(|file| fs::read_to_string(file).ok());
    let kernel = || fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let text = own.unwrap_or_else(kernel);
    text.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or(default)
}

fn free_bsd(config: Config) -> Config {
    // The buffer is 64 KiB, rounded up to whole segments.
    let segments = (64_u32 << 10).div_ceil(u32::from(config.mss));
    Config {
        receive_window: ReceiveWindow::fixed(segments * u32::from(config.mss)),
        congestion: Congestion::Cubic,
        byte_counting: Some(2),
        hystart: false,
        recovery: Recovery::Sack,
        reduction: Reduction::Immediate,
        frto: false,
        initial_window: InitialWindow::Segments(10),
        delayed_ack: Some(Duration::from_millis(40)),
        rto: Rto { minimum: Duration::from_millis(230), ..Rto::default() },
        timestamps: true,
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let setup: Setup = "profile=freebsd,mtu=9000,local6=::1".parse().unwrap();
        let expected = Setup {
            profile: Profile::FreeBsd,
            mtu: 9000,
            local6: Ipv6Addr::LOCALHOST,
            ..Setup::default()
        };
        assert_eq!(setup, expected);
        assert_eq!("".parse(), Ok(Setup::default()));
    }

    #[test]
    fn a_server_accepts_forms_of_ecn_that_a_client_does_not_offer() {
        let forms = |tcp_ecn| (offered_ecn(tcp_ecn), accepted_ecn(tcp_ecn));
        assert_eq!(forms(0), (EcnMode::Off, EcnMode::Off));
        assert_eq!(forms(1), (EcnMode::Classic, EcnMode::Classic));
        assert_eq!(forms(2), (EcnMode::Off, EcnMode::Classic));
        assert_eq!(forms(3), (EcnMode::Accurate, EcnMode::Accurate));
        assert_eq!(forms(4), (EcnMode::Classic, EcnMode::Accurate));
        assert_eq!(forms(5), (EcnMode::Off, EcnMode::Accurate));
    }

    #[test]
    fn wrong_flags_are_named() {
        let complaint = |flags: &str| flags.parse::<Setup>().unwrap_err().to_string();
        assert_eq!(complaint("mtu=12"), "--so_flags: `12` for `mtu`: expected 576 to 65535");
        assert!(complaint("profile=openbsd").contains("linux or freebsd"));
        assert!(complaint("mut=1500").contains("unknown key `mut`"));
        assert!(complaint("local4=::1").contains("an IPv4 address"));
    }
}
