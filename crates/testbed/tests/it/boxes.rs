//! Boxes on real packets: what the lab puts into nodes works in namespaces, too.

use crate::common::{self, NOISY_HOP, WINDOW, at_once, complete, run};

/// Runs the path with a flow of 1 MB whose `tcp` is this, and with what else it has.
fn with(tcp: &str, more: &str) -> Option<testbed::Outcome> {
    let flow = format!(
        "[[flows]]\nfrom = \"server\"\nto = \"mobile\"\ntraffic = {{ size = \"1 MB\" }}\ntcp = {{ recovery = \
         \"sack\", {WINDOW}, {tcp} }}\n{more}"
    );
    run(&format!("{NOISY_HOP}{flow}"))
}

/// The same with these boxes in a node.
fn with_boxes(tcp: &str, node: &str, boxes: &str) -> Option<testbed::Outcome> {
    let [empty, node] = ["", boxes].map(|boxes| match boxes {
        "" => format!("{node} = {{}}"),
        boxes => format!("{node} = {{ boxes = [{boxes}] }}"),
    });
    let flow = format!(
        "[[flows]]\nfrom = \"server\"\nto = \"mobile\"\ntraffic = {{ size = \"1 MB\" }}\ntcp = {{ \
         recovery = \"sack\", {WINDOW}, {tcp} }}\n"
    );
    run(&format!("{}{flow}", NOISY_HOP.replace(&empty, &node)))
}

/// Timeouts and reductions of the sender, and packets that were corrupted.
fn losses(outcome: &testbed::Outcome) -> (u64, u64, u64) {
    let row = &outcome.run.rows[0];
    eprintln!("{:?} {:?} {:?}", row.completed_s, row.sender, outcome.run.totals);
    complete(row, 1_000_000);
    let sender = &row.sender;
    let corrupted = outcome.run.totals.corrupted;
    (sender.timeouts.unwrap(), sender.reductions.unwrap(), corrupted)
}

#[test]
fn receivers_are_notified_of_corruption_and_echo_it() {
    at_once(["message", "piggyback", "marked"], |transport| {
        let eten = format!("eten = {{ report = \"forward\", transport = \"{transport}\" }}");
        let Some(outcome) = with(&eten, "") else { return };
        let notices = outcome.run.rows[0].sender.notices.unwrap();
        let (_, reductions, corrupted) = losses(&outcome);
        assert!(corrupted >= 8 && notices * 10 >= corrupted * 6, "{transport}: {notices}");
        // Without notices, nearly every corruption reduces the window.
        assert!(reductions * 3 < corrupted, "{transport}: {reductions} of {corrupted}");
        // Each copy is reported once.
        assert!(notices <= corrupted + 5, "{transport}: {notices} of {corrupted}");
    });
}

#[test]
fn nodes_measure_their_links_and_senders_make_use_of_it() {
    let reductions = |eten| with(eten, "").map(|outcome| losses(&outcome).1);
    let strategy = "eten = { report = \"cumulative\", strategy = \"loss-ratio\" }";
    let both = at_once(["eten = \"none\"", strategy], reductions);
    let [Some(plain), Some(notified)] = both else { return };
    // No queue overflows: after the first estimates, all losses count as corruption.
    assert!(notified * 3 < plain, "{notified} with cumulative notification, {plain} without");
    // The same by a meter at the end of the link that corrupts.
    let mechanism = "mechanisms = [{ mechanism = \"cumulative-eten\", strategy = \"loss-ratio\" }]";
    let Some(metered) = with_boxes(mechanism, "mobile", "{ box = \"loss-meter\" }") else { return };
    let metered = losses(&metered).1;
    assert!(metered * 3 < plain, "{metered} with a meter, {plain} without");
    let Some(unmetered) = with_boxes(mechanism, "server", "{ box = \"loss-meter\" }") else {
        return;
    };
    let unmetered = losses(&unmetered).1;
    assert!(metered * 2 < unmetered, "{metered} with a meter, {unmetered} with one elsewhere");
}

#[test]
fn a_code_repairs_what_is_corrupted() {
    let more = "coding = { block = 10, strength = 0.3, signal = \"none\" }";
    let Some(outcome) = with("eten = \"none\"", more) else { return };
    let (timeouts, reductions, corrupted) = losses(&outcome);
    assert!(corrupted >= 8, "{corrupted}");
    assert!(timeouts + reductions <= 2, "{timeouts} timeouts, {reductions} reductions");
}

#[test]
fn a_tunnel_hides_packets_and_its_ingress_resolves_notices() {
    let outcomes = at_once(["resolve", "lost"], |notices| {
        let tunnel = "[[tunnels]]\nfrom = \"server\"\nto = \"mobile\"";
        with("eten = \"backward\"", &format!("{tunnel}\nnotices = \"{notices}\""))
    });
    let [Some(outcome), Some(without)] = outcomes else { return };
    let notices = outcome.run.rows[0].sender.notices.unwrap();
    let (_, reductions, corrupted) = losses(&outcome);
    assert!(corrupted >= 8 && notices * 10 >= corrupted * 6, "{notices} of {corrupted}");
    assert!(reductions * 3 < corrupted, "{reductions} of {corrupted}");
    // Without a way to resolve them, there are none.
    losses(&without);
    assert_eq!(without.run.rows[0].sender.notices, Some(0));
}

#[test]
fn an_attacker_on_the_path_makes_the_sender_retransmit() {
    let attack = "name = \"victim\"\n[[attacks]]\nat = \"station\"\nflow = \"victim\"\n\
                  knowledge = \"on-path\"\nevery = 3";
    let retransmissions = |eten: &str| {
        let outcome = with(eten, attack)?;
        losses(&outcome);
        outcome.run.rows[0].sender.retransmissions
    };
    let Some(fooled) = retransmissions("eten = \"backward\"") else { return };
    assert!(fooled > 100, "{fooled}");
    // The same attacker as a box of its node.
    let (eten, attacker) = ("eten = \"backward\"", "{ box = \"on-path-attacker\", every = 3 }");
    let Some(outcome) = with_boxes(eten, "station", attacker) else { return };
    losses(&outcome);
    let fooled = outcome.run.rows[0].sender.retransmissions.unwrap();
    assert!(fooled > 100, "{fooled}");
}

#[test]
fn who_guesses_off_the_path_gets_past_no_nonce() {
    let attack = "name = \"victim\"\n[[attacks]]\nat = \"station\"\nflow = \"victim\"\n\
                  knowledge = \"blind\"\naim = \"window\"\nrate = 200";
    let outcome = |defences: &str| {
        let eten = format!("eten = {{ report = \"backward\", defences = {{ {defences} }} }}");
        with(&eten, attack)
    };
    let both = at_once(["", "nonce = true"], outcome);
    let [Some(open), Some(guarded)] = both else { return };
    let [open, guarded] = [open, guarded].map(|outcome| {
        let (.., corrupted) = losses(&outcome);
        // Of the notices that were believed, those beyond one a corruption are forged.
        outcome.run.rows[0].sender.notices.unwrap().saturating_sub(corrupted)
    });
    assert!(open > 50 && guarded == 0, "{open} without, {guarded} with nonces");
}

#[test]
fn a_box_that_a_file_puts_into_a_node_edits_what_passes() {
    let Some(outcome) = with_boxes(
        "mss = 1400, eten = \"backward\"",
        "station",
        "{ box = \"mss-clamp\", mss = 500 }",
    ) else {
        return;
    };
    losses(&outcome);
    let segments = outcome.run.rows[0].sender.segments.unwrap();
    assert!((2000..3000).contains(&segments), "{segments} segments of at most 500 bytes");
}

#[test]
fn a_kernel_does_without_the_options_that_a_node_strips() {
    let segments = |options: &str| {
        let strip =
            format!("b = {{ boxes = [{{ box = \"strip-options\", options = [{options}] }}] }}");
        let stack = "stack   = \"linux\"\ntcp = { mss = 1000, timestamps = true }";
        let text = common::with(&[("b = {}", &strip), ("stack   = \"lasthop\"", stack)]);
        run(&text).map(|outcome| {
            let row = &outcome.run.rows[0];
            complete(row, 1_000_000);
            eprintln!("{options}: {:?}", row.sender);
            row.sender.segments.unwrap() - row.sender.retransmissions.unwrap()
        })
    };
    let both = at_once(["", "\"timestamps\""], segments);
    let [Some(plain), Some(stripped)] = both else { return };
    // Of 988 bytes, and of 1000.
    assert!(
        (1013..1023).contains(&plain) && (1000..1010).contains(&stripped),
        "{plain}, {stripped}"
    );
}
