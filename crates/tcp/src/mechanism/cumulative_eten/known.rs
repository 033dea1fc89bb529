//! What an end knows of both ways, and what it says of them.

use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use wire::{Causes, Code, PathFields, PathForm, Probability};

/// From fields of headers. Each form has its own part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    /// The survival of what the peer sends, to be echoed; of what we send, as echoed.
    echo: Causes<Probability>,
    survival: Causes<Probability>,
    /// The same as levels.
    echo_level: Causes<u8>,
    level: Causes<u8>,
    /// Steps that the peer is still to be told of, and the sum of those that it has told.
    owed: Causes<i16>,
    sum: Causes<i16>,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            echo: Causes::SURVIVES,
            survival: Causes::SURVIVES,
            echo_level: Causes::default(),
            level: Causes::default(),
            owed: Causes::default(),
            sum: Causes::default(),
        }
    }
}

impl Known {
    /// A segment of the peer had these.
    pub(super) fn heard(&mut self, form: PathForm, fields: &PathFields) {
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
                // There is no level below the lowest: a step upwards was lost.
                self.sum = self.sum.map(|sum| sum.max(0));
            }
            // Of another form than agreed.
            _ => {}
        }
    }

    /// How likely what we send survives.
    pub(super) fn survival(&self, form: PathForm) -> Causes<f64> {
        match form {
            PathForm::Probability => self.survival.map(Probability::get),
            PathForm::Levels | PathForm::Binary => self.level.map(|level| form.survival(level)),
            PathForm::Relative => self.sum.map(|sum| form.survival(sum.clamp(0, 2) as u8)),
        }
    }

    /// What the next segment starts with.
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

    /// The same, and it goes out.
    pub(super) fn next_fields(&mut self, form: PathForm) -> PathFields {
        let fields = self.fields(form);
        self.owed = self.owed.map(|owed| owed - owed.signum());
        fields
    }
}

/// From messages about single links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Link {
    node: IpAddr,
    number: u32,
    survival: Causes<Probability>,
    heard_at: Time,
}

impl Links {
    /// More no path has.
    const MOST: usize = 128;
    /// A link of which so long nothing was heard is no longer on the path.
    const LIFETIME: Duration = Duration::from_secs(60);

    /// The latest about a link.
    pub(super) fn heard(
        &mut self,
        now: Time,
        (node, number): (IpAddr, u32),
        survival: Causes<Probability>,
    ) {
        self.0.retain(|link| {
            (link.node, link.number) != (node, number)
                && now.since(link.heard_at) <= Links::LIFETIME
        });
        if self.0.len() < Links::MOST {
            self.0.push(Link { node, number, survival, heard_at: now });
        }
    }

    /// How likely what we send survives all of them.
    pub(super) fn survival(&self, now: Time) -> Causes<f64> {
        let links = self.0.iter().filter(|link| now.since(link.heard_at) <= Links::LIFETIME);
        links.fold(Causes { corruption: 1.0, congestion: 1.0 }, |path, link| Causes {
            corruption: path.corruption * link.survival.corruption.get(),
            congestion: path.congestion * link.survival.congestion.get(),
        })
    }
}
