//! Cumulative ETEN: a node measures the survival probabilities of packets on its links and in its
//! queues, and writes them into the headers of passing packets (`bbn8333` §4.1, §4.2).

mod traceback;

pub use traceback::Traceback;

use crate::table::{Settings, Site};
use base::Time;
use base::settings::Kind;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Causes, Code, Packet, PathFields, PathForm, Probability};

/// Measures the links of a node and updates the path fields of packets.
///
/// It averages the share of packets that arrive undamaged on each link that ends at the node, and
/// the share that the queue accepts of each link that begins there. The packets of all flows count.
/// A host measures its own links likewise. A packet that its own code had to correct counts as
/// damaged: the fields report the channel for packets without a code.
#[derive(Clone, Debug)]
pub struct Meter {
    a: f64,
    form: PathForm,
    /// Survival of corruption, by the number of the link.
    arriving: Vec<Survival>,
    leaving: Vec<Survival>,
    traceback: Option<Traceback>,
}

/// The survival of packets on a link, for one of the two causes of loss.
#[derive(Clone, Copy, Debug)]
struct Survival {
    /// The average of 1 for each packet that survived and 0 for each that did not.
    share: f64,
    /// The level of loss reported so far, if packets report changes of it.
    reported: u8,
    /// The next packet was corrected by its own code.
    corrected: bool,
}

impl Survival {
    const FULL: Survival = Survival { share: 1.0, reported: 0, corrected: false };

    /// `bbn8333` §4.2, equation 1: p = a x + (1 - a) p.
    #[inline]
    fn count(&mut self, a: f64, survived: bool) {
        let x = if survived { 1.0 } else { 0.0 };
        self.share = a * x + (1.0 - a) * self.share;
    }

    /// The updated code of a packet whose code of the path so far is `code`.
    fn code(&mut self, form: PathForm, code: Code) -> Code {
        let level = form.level(1.0 - self.share);
        if form != PathForm::Relative {
            return Code::level(level.max(code.as_level()));
        }
        // One level at a time, and only if the code has room for the step.
        let step = (level as i8 - self.reported as i8).signum();
        let sum = code.as_step() + step;
        if sum.abs() > 1 {
            return code;
        }
        self.reported = self.reported.saturating_add_signed(step);
        Code::step(sum)
    }
}

/// The measurements of a link.
#[inline]
fn at(links: &mut Vec<Survival>, Port(number): Port) -> &mut Survival {
    let index = number as usize;
    if index >= links.len() {
        links.resize(index + 1, Survival::FULL);
    }
    &mut links[index]
}

/// The cause of loss that a measurement is about.
#[derive(Clone, Copy)]
enum Cause {
    Corruption,
    Congestion,
}

impl Cause {
    fn of<T>(self, causes: &mut Causes<T>) -> &mut T {
        match self {
            Cause::Corruption => &mut causes.corruption,
            Cause::Congestion => &mut causes.congestion,
        }
    }
}

impl Meter {
    /// A meter that gives each packet the weight `a`, from 0 to 1, in its averages and reports them
    /// in this form. The averages start without loss.
    #[must_use]
    pub fn new(a: f64, form: PathForm) -> Meter {
        Meter { a, form, arriving: Vec::new(), leaving: Vec::new(), traceback: None }
    }

    /// Sends survival notices, too.
    #[must_use]
    pub fn with_traceback(self, traceback: Traceback) -> Meter {
        Meter { traceback: Some(traceback), ..self }
    }

    /// The survival of corruption on a link that ends here, as estimated.
    #[must_use]
    pub fn corruption(&self, port: Port) -> f64 {
        self.arriving.get(port.0 as usize).map_or(1.0, |link| link.share)
    }

    /// The survival of congestion at a link that begins here, as estimated.
    #[must_use]
    pub fn congestion(&self, port: Port) -> f64 {
        self.leaving.get(port.0 as usize).map_or(1.0, |link| link.share)
    }
}

/// Adds the measurements of a link to a packet's fields.
fn update(form: PathForm, survival: &mut Survival, cause: Cause, packet: &mut Packet) {
    let Some(mut fields) = PathFields::of(packet) else { return };
    match &mut fields {
        PathFields::Exact { forward, .. } if form.is_exact() => {
            let field: &mut Probability = cause.of(forward);
            *field = field.and(survival.share);
        }
        PathFields::Coded { forward, .. } if !form.is_exact() => {
            let field = cause.of(forward);
            *field = survival.code(form, *field);
        }
        // Of another form than this network's.
        _ => return,
    }
    fields.renew(packet);
}

impl Middlebox for Meter {
    #[inline]
    fn packet(
        &mut self,
        _now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if let Some(port) = from {
            let survival = at(&mut self.arriving, port);
            let corrected = core::mem::take(&mut survival.corrected);
            survival.count(self.a, !corrected);
            if packet.unparsed.has_ip() {
                update(self.form, survival, Cause::Corruption, packet);
            }
            if let Some(traceback) = &mut self.traceback {
                let of = |corruption| Causes { corruption, ..Causes::SURVIVES };
                traceback.consider(packet, port, survival, of, cx);
            }
        }
        Verdict::Forward
    }

    #[inline]
    fn queued(&mut self, _now: Time, to: Port, packet: &mut Packet, cx: &mut Context<'_>) {
        let survival = at(&mut self.leaving, to);
        survival.count(self.a, true);
        if packet.unparsed.has_ip() {
            update(self.form, survival, Cause::Congestion, packet);
        }
        if let Some(traceback) = &mut self.traceback {
            let of = |congestion| Causes { congestion, ..Causes::SURVIVES };
            traceback.consider(packet, to, survival, of, cx);
        }
    }

    fn link(&mut self, _now: Time, port: Port, event: LinkEvent<'_>, _cx: &mut Context<'_>) {
        match event {
            LinkEvent::Corrupted(_) => at(&mut self.arriving, port).count(self.a, false),
            LinkEvent::Corrected(_) => at(&mut self.arriving, port).corrected = true,
            LinkEvent::Dropped(_) => at(&mut self.leaving, port).count(self.a, false),
            LinkEvent::Up { .. } | LinkEvent::Down { .. } | LinkEvent::Mtu { .. } => {}
        }
    }
}

base::settings! {
    /// The settings of a [`Meter`] that stands in a node.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct LossMeter {
        /// The weight of one packet in the average of a link's losses, above 0 and at most 1.
        pub a: f64 as Kind::Weight,
        /// What it writes into headers. It leaves fields of other forms as they are.
        pub form: PathForm,
        /// The probability that it sends a message about a packet of `flows` to its source.
        pub messages: f64 as Kind::Number { least: 0.0, most: 1.0 },
        /// The names of the flows that messages are about; all if the list is empty.
        pub flows: Vec<String>,
    }
}

impl Default for LossMeter {
    /// Probabilities in headers, as published.
    fn default() -> LossMeter {
        LossMeter { a: 0.5, form: PathForm::default(), messages: 0.0, flows: Vec::new() }
    }
}

impl Settings for LossMeter {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn needs_damage_reports(&self) -> bool {
        true
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let meter = Meter::new(self.a, self.form);
        if self.messages == 0.0 {
            return Box::new(meter);
        }
        let mut traceback = Traceback::new(site.own.to_vec(), self.messages, (site.random)());
        for flow in site.flows(&self.flows) {
            traceback.register(flow.source, flow.destination, flow.port);
        }
        Box::new(meter.with_traceback(traceback))
    }
}

#[cfg(test)]
mod tests;
