//! What of a scenario cannot be run with programs of the user's.

use crate::Error;
use middlebox::BoxSettings;
use scenario::{NodeBox, Scenario};

/// Checks that nothing belongs to the flows of the scenario, which are not run.
pub(super) fn check(scenario: &Scenario) -> Result<(), Error> {
    let refuse = |what: String, why: &str| Err(Error::Refused { what, why: why.to_owned() });
    if !scenario.tunnels.is_empty() {
        return refuse("`tunnels`".to_owned(), "what they carry is known to this process alone");
    }
    if !scenario.attacks.is_empty() {
        return refuse("`attacks`".to_owned(), "they aim at flows of the scenario");
    }
    for NodeBox { node, settings, .. } in &scenario.boxes {
        if let Some((name, why)) = reason(settings) {
            return refuse(format!("the box `{name}` of node `{}`", scenario.nodes[*node]), why);
        }
    }
    Ok(())
}

/// The name of a box that cannot be run, and why.
fn reason(settings: &BoxSettings) -> Option<(&'static str, &'static str)> {
    const NOTICES: &str = "the kernel's TCP does not understand what it reports";
    const FLOWS: &str = "it knows flows of the scenario by their addresses and ports";
    Some(match settings {
        BoxSettings::CorruptionReporter(_) => ("corruption-reporter", NOTICES),
        BoxSettings::CorruptionForwarder(_) => ("corruption-forwarder", NOTICES),
        BoxSettings::LossMeter(_) => ("loss-meter", NOTICES),
        BoxSettings::SpepStation(_) => ("spep", NOTICES),
        BoxSettings::TransportEsp(_) => ("esp", FLOWS),
        BoxSettings::OnPathAttacker(_) => ("on-path-attacker", FLOWS),
        BoxSettings::FalseEchoes(_) => ("false-echoes", FLOWS),
        BoxSettings::FalseFields(_) => ("false-fields", FLOWS),
        BoxSettings::MssClamp(_)
        | BoxSettings::StripOptions(_)
        | BoxSettings::Impairment(_)
        | BoxSettings::Spoofer(_)
        | BoxSettings::Pair(_)
        | BoxSettings::Snoop(_)
        | BoxSettings::Station(_)
        | BoxSettings::Mobile(_) => return None,
    })
}
