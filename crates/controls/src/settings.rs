//! What the loader writes into a program's read-only data: `struct settings` of bpf/settings.h.

use crate::{Control, Error};
use base::Duration;
use base::settings::Span;
use tcp::congestion::WestwoodPlusPath;
use tcp::congestion::{Auto, Canit, Cap, ConstantRate, Fast, IncreaseByK, RoundTrip};

/// 1 in multiples of 2^-24.
const ONE: f64 = (1_u64 << 24) as f64;

macro_rules! settings {
    ($($name:ident,)+) => {
        /// The fields of `struct settings`, all of 64 bits.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Settings {
            $($name: u64,)+
            /// Calls are recorded.
            pub(crate) record: u64,
        }

        impl Settings {
            /// As in the memory of the program.
            pub(crate) fn to_bytes(self) -> Vec<u8> {
                [$(self.$name,)+ self.record].into_iter().flat_map(u64::to_ne_bytes).collect()
            }

            /// `None` if there are not as many bytes.
            pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Settings> {
                let (numbers, []) = bytes.as_chunks() else { return None };
                let mut numbers = numbers.iter().map(|number| u64::from_ne_bytes(*number));
                let settings = Settings { $($name: numbers.next()?,)+ record: numbers.next()? };
                numbers.next().is_none().then_some(settings)
            }
        }
    };
}

settings! {
    k, c, nit_us, rtt_us, cap, fast, per_ack,
    auto_share, auto_room, auto_weight, auto_train, westwood_keep,
}

impl Settings {
    /// Those of a control.
    pub(crate) fn of(control: &Control, per_ack: bool) -> Result<Settings, Error> {
        let mut settings = Settings {
            per_ack: per_ack.into(),
            auto_share: fixed(Auto::SHARE),
            auto_room: fixed(Auto::WORTHWHILE),
            auto_weight: fixed(Auto::WEIGHT),
            auto_train: Auto::TRAIN,
            westwood_keep: fixed(WestwoodPlusPath::ALPHA),
            ..Settings::default()
        };
        match control {
            Control::IncreaseByK(f) => settings.set_increase_by_k(f)?,
            Control::ConstantRate(f) => settings.set_constant_rate(f)?,
            Control::Canit(f) => settings.set_canit(f)?,
            Control::Auto(auto) => match &auto.fast {
                Fast::IncreaseByK(f) => settings.set_increase_by_k(f)?,
                Fast::ConstantRate(f) => {
                    settings.fast = 1;
                    settings.set_constant_rate(f)?;
                }
                Fast::Canit(f) => {
                    settings.fast = 2;
                    settings.set_canit(f)?;
                }
            },
            Control::WestwoodPlus => {}
        }
        Ok(settings)
    }

    fn set_increase_by_k(&mut self, f: &IncreaseByK) -> Result<(), Error> {
        self.k = above_zero("k", f.k)?;
        Ok(())
    }

    fn set_constant_rate(&mut self, f: &ConstantRate) -> Result<(), Error> {
        const LARGEST: f64 = 1000.0;
        if f.c > LARGEST {
            return Err(Error::Range { what: "c", range: "at most 1000" });
        }
        self.c = above_zero("c", f.c)?;
        self.set_common(f.rtt, f.cap)
    }

    fn set_canit(&mut self, f: &Canit) -> Result<(), Error> {
        self.nit_us = micros("nit", f.nit.0)?;
        self.set_common(f.rtt, f.cap)
    }

    fn set_common(&mut self, rtt: RoundTrip, cap: Cap) -> Result<(), Error> {
        self.rtt_us = match rtt {
            RoundTrip::Smoothed => 0,
            RoundTrip::Given(given) => micros("rtt", given)?,
            RoundTrip::Propagation => {
                let range = "smoothed or a duration: a host does not know the path's delay";
                return Err(Error::Range { what: "rtt", range });
            }
        };
        self.cap = cap.0.map_or(Ok(0), |cap| above_zero("cap", cap))?;
        Ok(())
    }

    /// The settings of a control as it runs.
    pub(crate) fn read(&self, control: &Control) -> Control {
        match control {
            Control::IncreaseByK(_) => Control::IncreaseByK(self.increase_by_k()),
            Control::ConstantRate(_) => Control::ConstantRate(self.constant_rate()),
            Control::Canit(_) => Control::Canit(self.canit()),
            Control::Auto(_) => Control::Auto(Auto::new(match self.fast {
                0 => Fast::IncreaseByK(self.increase_by_k()),
                1 => Fast::ConstantRate(self.constant_rate()),
                _ => Fast::Canit(self.canit()),
            })),
            Control::WestwoodPlus => Control::WestwoodPlus,
        }
    }

    /// Whether an acknowledgment counts once, whatever it acknowledges.
    pub(crate) fn is_per_ack(&self) -> bool {
        self.per_ack != 0
    }

    fn increase_by_k(&self) -> IncreaseByK {
        IncreaseByK { k: float(self.k) }
    }

    fn constant_rate(&self) -> ConstantRate {
        ConstantRate { c: float(self.c), rtt: self.rtt(), cap: self.cap() }
    }

    fn canit(&self) -> Canit {
        Canit { nit: Span(Duration::from_micros(self.nit_us)), rtt: self.rtt(), cap: self.cap() }
    }

    fn rtt(&self) -> RoundTrip {
        match self.rtt_us {
            0 => RoundTrip::Smoothed,
            given => RoundTrip::Given(Duration::from_micros(given)),
        }
    }

    fn cap(&self) -> Cap {
        Cap((self.cap != 0).then(|| float(self.cap)))
    }
}

fn fixed(number: f64) -> u64 {
    (number * ONE).round() as u64
}

pub(crate) fn float(number: u64) -> f64 {
    number as f64 / ONE
}

fn above_zero(what: &'static str, number: f64) -> Result<u64, Error> {
    let is_valid = number * ONE >= 1.0 && number < 65_536.0;
    is_valid
        .then(|| fixed(number))
        .ok_or(Error::Range { what, range: "a number above 0 and below 65536" })
}

/// The programs count microseconds.
fn micros(what: &'static str, span: Duration) -> Result<u64, Error> {
    let micros = span.as_nanos() / 1000;
    let is_valid = micros > 0 && micros < 1 << 24 && span == Duration::from_micros(micros);
    is_valid
        .then_some(micros)
        .ok_or(Error::Range { what, range: "1 us to 16 s, in whole microseconds" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let canit = Canit {
            nit: Span(Duration::from_micros(1500)),
            rtt: RoundTrip::Given(Duration::from_millis(90)),
            cap: Cap(Some(1.5)),
        };
        let rate = ConstantRate { c: 100.0, ..ConstantRate::default() };
        let mut controls = Vec::from(Control::ALL);
        controls.extend([
            Control::IncreaseByK(IncreaseByK { k: 2.5 }),
            Control::ConstantRate(rate),
            Control::Canit(canit),
            Control::Auto(Auto::new(Fast::ConstantRate(rate))),
            Control::Auto(Auto::new(Fast::IncreaseByK(IncreaseByK::default()))),
        ]);
        for control in controls {
            for per_ack in [false, true] {
                let bytes = Settings::of(&control, per_ack).unwrap().to_bytes();
                let settings = Settings::from_bytes(&bytes).unwrap();
                assert_eq!(settings.read(&control), control);
                assert_eq!(settings.is_per_ack(), per_ack);
                assert_eq!(Settings::from_bytes(&bytes[8..]), None);
            }
        }
    }

    #[test]
    fn what_the_programs_cannot_represent_is_refused() {
        let refused = |control| Settings::of(&control, false).is_err();
        assert!(refused(Control::IncreaseByK(IncreaseByK { k: 65_536.0 })));
        assert!(refused(Control::IncreaseByK(IncreaseByK { k: 1e-9 })));
        let rate = ConstantRate::default();
        assert!(refused(Control::ConstantRate(ConstantRate { c: 1001.0, ..rate })));
        let rtt = RoundTrip::Propagation;
        assert!(refused(Control::ConstantRate(ConstantRate { rtt, ..rate })));
        for nanos in [0, 999, 1500, 17_000_000_000] {
            let nit = Span(Duration::from_nanos(nanos));
            assert!(refused(Control::Canit(Canit { nit, ..Canit::default() })), "{nanos}");
        }
    }
}
