//! The way beyond this machine: packets of our host leave as packets of the machine, and their answers
//! are forwarded to it.
//!
//! All of that is one nft table, whose comment names the setting that was changed beside it. What a
//! killed process leaves is therefore found and undone by the table alone.

use super::Error;
use crate::error::Doing;
use crate::namespace::process;
use std::io::{ErrorKind, Write as _};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A setting under /proc/sys. Unlike names with dots, its path is unambiguous for any device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting(String);

impl Setting {
    /// A setting of a device for a version of IP.
    pub(crate) fn of(v6: bool, device: &str, key: &str) -> Setting {
        Setting(format!("net/{}/conf/{device}/{key}", if v6 { "ipv6" } else { "ipv4" }))
    }

    /// What makes the kernel forward packets that arrive at a device; `None` if it does so already,
    /// whatever the device. An error is the setting of all devices together.
    pub(crate) fn forwarding(v6: bool, device: &str) -> Result<Option<Setting>, Setting> {
        if !v6 {
            return Ok(Some(Setting::of(v6, device, "forwarding")));
        }
        let all = Setting::of(v6, "all", "forwarding");
        if all.is_on() {
            return Ok(None);
        }
        // Linux 6.17.
        let own = Setting::of(v6, device, "force_forwarding");
        if own.path().exists() { Ok(Some(own)) } else { Err(all) }
    }

    pub(crate) fn is_on(&self) -> bool {
        std::fs::read_to_string(self.path()).is_ok_and(|value| value.trim() == "1")
    }

    pub(crate) fn set(&self, value: u8) -> Result<(), crate::Error> {
        let value = value.to_string();
        std::fs::write(self.path(), &value).doing(|| format!("setting {self} to {value}"))
    }

    fn path(&self) -> std::path::PathBuf {
        Path::new("/proc/sys").join(&self.0)
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An nft table of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// `ip` or `ip6`.
    family: String,
    name: String,
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {} {}", self.family, self.name)
    }
}

/// Dropping it undoes it.
#[derive(Debug)]
pub(crate) struct Masquerade {
    table: Table,
}

impl Masquerade {
    /// Masquerades the address of our host, which is on `device`, and forwards answers from the device
    /// `out`. Returns also what was changed, in words.
    pub(crate) fn new(
        ours: IpAddr,
        device: &str,
        out: &str,
    ) -> Result<(Masquerade, Vec<String>), Error> {
        let v6 = ours.is_ipv6();
        let setting = Setting::forwarding(v6, out).map_err(|all| {
            Error::Unusable(format!(
                "this kernel forwards IPv6 from all devices or from none: `sysctl -w {all}=1` (with \
                 `net/ipv6/conf/{out}/accept_ra=2` if its default route comes from a router), and \
                 try again"
            ))
        })?;
        let table = Table {
            family: if v6 { "ip6" } else { "ip" }.to_owned(),
            name: format!("lasthop-{}-{device}", std::process::id()),
        };
        // Another process may need the setting longer than the one that has changed it.
        let recorded = |setting: &Setting| {
            tables()
                .is_ok_and(|all| all.iter().any(|table| table.setting().as_ref() == Some(setting)))
        };
        let changed = setting.filter(|setting| !setting.is_on() || recorded(setting));
        let comment =
            changed.as_ref().map(|setting| format!("comment \"{setting}\"\n")).unwrap_or_default();
        nft(&format!(
            "{table} {{\n{comment}chain postrouting {{\ntype nat hook postrouting priority 100;\n\
             {} saddr {ours} masquerade\n}}\n}}\n",
            table.family
        ))?;
        let mut words = vec![format!("nft {table}: {ours} is masqueraded")];
        let masquerade = Masquerade { table };
        if let Some(setting) = changed {
            setting.set(1)?;
            words.push(format!("{setting} = 1"));
        }
        Ok((masquerade, words))
    }
}

impl Drop for Masquerade {
    fn drop(&mut self) {
        // A failure cannot be reported here; `clean` finds the remains.
        let _ = self.table.undo();
    }
}

impl Table {
    /// Removes it, and switches off what was switched on with it, unless another table needs that.
    fn undo(&self) -> Result<(), Error> {
        let setting = self.setting();
        nft(&format!("delete {self}\n"))?;
        if let Some(setting) = setting
            && !tables()?.iter().any(|other| other.setting().as_ref() == Some(&setting))
            && setting.path().exists()
        {
            setting.set(0)?;
        }
        Ok(())
    }

    /// The setting that its comment names.
    fn setting(&self) -> Option<Setting> {
        let listed = nft(&format!("list {self}\n")).ok()?;
        let comment = listed.lines().find_map(|line| line.trim().strip_prefix("comment \""))?;
        let path = comment.strip_suffix('"')?;
        // It comes from outside of this process.
        let valid = path.starts_with("net/ipv") && !path.contains("..");
        valid.then(|| Setting(path.to_owned()))
    }
}

/// Undoes what killed processes have left, and returns what that was.
pub(super) fn clean() -> Result<Vec<String>, Error> {
    let running = |table: &Table| {
        process(&table.name).is_some_and(|id| Path::new("/proc").join(id.to_string()).exists())
    };
    let left = tables()?.into_iter().filter(|table| !running(table));
    left.map(|table| table.undo().map(|()| format!("nft {table}"))).collect()
}

/// Our tables of this network namespace.
fn tables() -> Result<Vec<Table>, Error> {
    let listed = match nft("list tables\n") {
        // Without the command there are none.
        Err(Error::NoNft) => return Ok(Vec::new()),
        listed => listed?,
    };
    let table = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(str::to_owned);
        let (family, name) = (words.next()?, words.next()?);
        process(&name).map(|_| Table { family, name })
    };
    Ok(listed.lines().filter_map(table).collect())
}

/// Masquerades all that leaves the calling thread's namespace by a device, for as long as there is this namespace.
pub(crate) fn masquerade_all(device: &str) -> Result<(), Error> {
    let table = |family: &str| {
        format!(
            "table {family} lasthop {{\nchain postrouting {{\ntype nat hook postrouting priority 100;\noifname \
             \"{device}\" masquerade\n}}\n}}\n"
        )
    };
    nft(&["ip", "ip6"].map(table).concat()).map(drop)
}

/// What nft prints.
fn nft(commands: &str) -> Result<String, Error> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C at the terminal does not reach it.
    let child = command.process_group(0).spawn();
    let action = || "running nft".to_owned();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NoNft),
        child => child.doing(action)?,
    };
    if let Some(mut input) = child.stdin.take() {
        // If it has ended, its own error says why.
        let _ = input.write_all(commands.as_bytes());
    }
    let done = child.wait_with_output().doing(action)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().next().unwrap_or("it failed").to_owned();
    Err(crate::Error::System { action: action(), source: std::io::Error::other(said) }.into())
}
