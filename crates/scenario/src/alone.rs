//! The settings of one TCP connection that belongs to no flow: without a scenario around it, or of a box.

use crate::ceten::{self, Ceten};
use crate::flow::{IpVersion, Profile, Report, settings};
use crate::reading::document::Document;
use crate::reading::error::{Problem, ScenarioError};
use crate::reading::shape::{Shape as _, table};
use crate::reading::source::Source;
use tcp::Config;
use tcp::congestion::Congestion;
use tcp::mechanism::Mechanism;
use toml::Spanned;

table! {
    /// The settings of one TCP connection.
    pub(crate) struct Alone {
        /// The defaults of what `tcp` leaves out.
        profile: Profile;
        /// The settings of TCP that differ from the profile, as a flow has them.
        tcp: Spanned<settings::Table>;
    }
}

/// Reads the settings of one connection over `ip`: `profile` and `tcp`, as a flow has them.
///
/// # Errors
/// If a key or a value is invalid, or if it concerns the nodes of a path.
pub fn connection_settings(source: &Source, ip: IpVersion) -> Result<Config, ScenarioError> {
    let document = Document::with_overrides(source)?;
    let mut problems = Vec::new();
    let config = Alone::read(document.root(), &mut problems)
        .and_then(|alone| alone.resolve(Profile::default(), ip, &mut problems));
    let done = config.filter(|_| problems.is_empty());
    done.ok_or_else(|| ScenarioError::new(document.findings(problems)))
}

impl Alone {
    /// Its settings of TCP, which may be none yet.
    fn tcp(&mut self) -> &mut settings::Table {
        let none = || Spanned::new(0..0, settings::Table::default());
        self.tcp.get_or_insert_with(none).get_mut()
    }

    /// The same, but with this congestion control in place of that of the modern profile.
    pub(crate) fn or_congestion(mut self, congestion: Congestion) -> Alone {
        if self.profile.unwrap_or_default() == Profile::Modern {
            self.tcp().congestion.get_or_insert(congestion);
        }
        self
    }

    /// The same, but with this loss threshold if the congestion control is BBR and no threshold is written. To be called
    /// after [`Alone::or_congestion`].
    pub(crate) fn or_loss_threshold(mut self, share: f64) -> Alone {
        if let Some(tcp) = &mut self.tcp {
            tcp.get_mut().or_loss_threshold(share);
        }
        self
    }

    /// The same, but BBR is as for a bad hop ([`Table::or_bad_hop`]). To be called after [`Alone::or_congestion`].
    pub(crate) fn or_bad_hop(mut self) -> Alone {
        self.tcp().or_bad_hop();
        self
    }

    /// The same, but with a prompt start unless it is written otherwise.
    pub(crate) fn or_prompt_start(mut self) -> Alone {
        self.tcp().or_prompt_start();
        self
    }

    /// The same, but with these mechanisms if none are written.
    pub(crate) fn or_mechanisms(mut self, mechanisms: Vec<Mechanism>) -> Alone {
        self.tcp().or_mechanisms(mechanisms);
        self
    }

    /// The settings over `ip`, checked; `profile` is used if none is written.
    pub(crate) fn resolve(
        self,
        profile: Profile,
        ip: IpVersion,
        problems: &mut Vec<Problem>,
    ) -> Option<Config> {
        let profile = self.profile.unwrap_or(profile);
        let defaults = match ip {
            IpVersion::V4 => profile.defaults(),
            IpVersion::V6 => profile.defaults().over_ipv6(),
        };
        let span = self.tcp.as_ref().map(Spanned::span);
        let tcp = self.tcp.map(Spanned::into_inner).unwrap_or_default();
        let eten = tcp.eten.as_ref().map(Spanned::span);
        let network: Ceten = ceten::resolve(None, problems);
        let settings = settings::resolve(tcp, ip, &network, &defaults, problems)?;
        if settings.eten.report != Report::None {
            let message = "nodes on the path would have to report corruption: expected \"none\"";
            let span = eten.or(span);
            problems.push(Problem { span, message: message.to_owned(), ..Problem::default() });
        }
        Some(settings.sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::source::Value;
    use tcp::Recovery;

    fn read(file: &str, puts: &[(&str, Value)], ip: IpVersion) -> Result<Config, ScenarioError> {
        let mut source = Source::new(file, "settings");
        for (path, value) in puts {
            source.put(path, value)?;
        }
        connection_settings(&source, ip)
    }

    #[test]
    fn without_settings_it_has_those_of_a_flow_of_the_modern_profile() {
        assert_eq!(read("", &[], IpVersion::V4).unwrap(), Config::default());
        assert_eq!(read("", &[], IpVersion::V6).unwrap().mss, 1440);
    }

    #[test]
    fn a_table_and_settings_in_it_have_the_words_of_a_flow() {
        let puts = [("tcp.recovery", "rack".into()), ("tcp.rto.minimum", "200 ms".into())];
        let config = read("tcp = { congestion = \"cubic\" }", &puts, IpVersion::V4).unwrap();
        assert_eq!((config.congestion, config.recovery), (Congestion::Cubic, Recovery::Rack));
        assert_eq!(config.rto.minimum, base::Duration::from_millis(200));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |file: &str, put: (&str, Value)| {
            read(file, &[put], IpVersion::V4).unwrap_err().to_string()
        };
        assert!(wrong("", ("tcp.congestoin", "cubic".into())).contains("`tcp.congestoin`"));
        assert!(wrong("", ("tcp.congestion", "cubik".into())).contains("cubik"));
        assert!(wrong("", ("tcp.eten", "backward".into())).contains("expected \"none\""));
        assert!(wrong("tcp = { mss = 0 }", ("tcp.nagle", true.into())).contains("`tcp.mss = 0`"));
        assert!(wrong("", ("flows", 1.into())).contains("flows"));
    }
}
