//! Survival estimates of both directions, and the fields that carry them.

use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use wire::{Causes, Code, PathFields, PathForm, Probability};

/// The state from header fields. Each encoding has its own part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PathState {
    /// The survival of the peer's segments, to be echoed; of our segments, as echoed.
    echo: Causes<Probability>,
    survival: Causes<Probability>,
    /// The same as levels.
    echo_level: Causes<u8>,
    level: Causes<u8>,
    /// Steps still to be echoed to the peer, and the sum of those that it has echoed.
    owed: Causes<i16>,
    sum: Causes<i16>,
}

impl Default for PathState {
    fn default() -> PathState {
        PathState {
            echo: Causes::SURVIVES,
            survival: Causes::SURVIVES,
            echo_level: Causes::default(),
            level: Causes::default(),
            owed: Causes::default(),
            sum: Causes::default(),
        }
    }
}

impl PathState {
    /// Updates the state by the fields of an arriving segment.
    pub(super) fn update(&mut self, form: PathForm, fields: &PathFields) {
        match (form, *fields) {
            (PathForm::Probability, PathFields::Exact { forward, echoed }) => {
                (self.echo, self.survival) = (forward, echoed);
            }
            (PathForm::Levels | PathForm::Binary, PathFields::Coded { forward, echoed }) => {
                self.echo_level = forward.map(Code::as_level);
                self.level = echoed.map(Code::as_level);
            }
            (PathForm::Relative, PathFields::Coded { forward, echoed }) => {
                for (sum, steps) in [(&mut self.owed, forward), (&mut self.sum, echoed)] {
                    let step = |sum: &mut i16, step: Code| {
                        *sum = sum.saturating_add(i16::from(step.as_step()));
                    };
                    step(&mut sum.corruption, steps.corruption);
                    step(&mut sum.congestion, steps.congestion);
                }
                // Below the lowest level: an upward step was lost.
                self.sum = self.sum.map(|sum| sum.max(0));
            }
            // Another encoding than configured.
            _ => {}
        }
    }

    /// The survival probability of our segments.
    pub(super) fn survival(&self, form: PathForm) -> Causes<f64> {
        match form {
            PathForm::Probability => self.survival.map(Probability::get),
            PathForm::Levels | PathForm::Binary => self.level.map(|level| form.survival(level)),
            PathForm::Relative => self.sum.map(|sum| form.survival(sum.clamp(0, 2) as u8)),
        }
    }

    /// The fields of the next segment.
    pub(super) fn fields(&self, form: PathForm) -> PathFields {
        let forward = Causes::default();
        match form {
            PathForm::Probability => {
                PathFields::Exact { forward: Causes::SURVIVES, echoed: self.echo }
            }
            PathForm::Levels | PathForm::Binary => {
                PathFields::Coded { forward, echoed: self.echo_level.map(Code::level) }
            }
            PathForm::Relative => {
                let echoed = self.owed.map(|owed| Code::step(owed.signum() as i8));
                PathFields::Coded { forward, echoed }
            }
        }
    }

    /// Takes the fields of the next segment for sending.
    pub(super) fn next_fields(&mut self, form: PathForm) -> PathFields {
        let fields = self.fields(form);
        self.owed = self.owed.map(|owed| owed - owed.signum());
        fields
    }
}

/// The state from messages about single links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LinkTable(Vec<Link>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Link {
    node: IpAddr,
    number: u32,
    survival: Causes<Probability>,
    updated_at: Time,
}

impl LinkTable {
    /// The largest number of links.
    const MAX_LINKS: usize = 128;
    /// A link without messages for this long is removed.
    const LIFETIME: Duration = Duration::from_secs(60);

    /// Updates one link.
    pub(super) fn update(
        &mut self,
        now: Time,
        (node, number): (IpAddr, u32),
        survival: Causes<Probability>,
    ) {
        self.0.retain(|link| {
            (link.node, link.number) != (node, number)
                && now.since(link.updated_at) <= LinkTable::LIFETIME
        });
        if self.0.len() < LinkTable::MAX_LINKS {
            self.0.push(Link { node, number, survival, updated_at: now });
        }
    }

    /// The survival probability over all links.
    pub(super) fn survival(&self, now: Time) -> Causes<f64> {
        let links = self.0.iter().filter(|link| now.since(link.updated_at) <= LinkTable::LIFETIME);
        links.fold(Causes { corruption: 1.0, congestion: 1.0 }, |path, link| Causes {
            corruption: path.corruption * link.survival.corruption.get(),
            congestion: path.congestion * link.survival.congestion.get(),
        })
    }
}
