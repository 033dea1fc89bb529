use super::*;

const MOBILE: IpAddr = address(9);

const fn address(last: u8) -> IpAddr {
    IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, last))
}

/// A base station with this address, whose incarnation is a hundred times as much.
fn station(number: u8) -> Registry<u8> {
    Registry::new([address(number); 2], 100 * u32::from(number))
}

/// The mobile host is attached to a base station, and the last one that has confirmed an attachment is another one.
fn attach(attachment: u64, station: u8, confirmed: u8) -> Mobility {
    let message = MobilityMessage::Attach {
        other: None,
        station: address(station),
        previous: Some(address(confirmed)),
        incarnation: Some(100 * u32::from(confirmed)),
    };
    Mobility::new(attachment, message)
}

fn actions(station: &mut Registry<u8>) -> Vec<Action<u8>> {
    core::iter::from_fn(|| station.poll()).collect()
}

#[test]
fn state_that_came_here_and_went_on_is_asked_for_where_it_went() {
    let now = Time::ZERO;
    let mut here = station(1);
    // It came here from station 3, which has confirmed the last attachment, and went on to station 2.
    here.on_attach(now, MOBILE, &attach(5, 1, 3));
    here.on_reply(MOBILE, Some(Reply::State));
    let request = |attachment, station: u8| Request {
        mobile: MOBILE,
        attach: attach(attachment, station, 3),
        expects: Some(100),
        incarnation: 100 * u32::from(station),
    };
    here.on_request(now, &request(6, 2), address(2), 7);
    assert!(actions(&mut here).contains(&Action::Give { mobile: MOBILE, to: 7 }));
    // The host is here again before station 2 has confirmed anything, and asks station 3, which knows of here.
    here.on_attach(now, MOBILE, &attach(7, 1, 3));
    let asked = |actions: Vec<Action<u8>>| match actions[..] {
        [Action::Fetch { from, request }] => (from, request.expects),
        _ => panic!("{actions:?}"),
    };
    assert_eq!(asked(actions(&mut here)), (address(3), Some(300)));
    here.on_reply(MOBILE, Some(Reply::Moved(address(1), 100)));
    assert_eq!(asked(actions(&mut here)), (address(2), Some(200)));
    here.on_reply(MOBILE, Some(Reply::State));
    let outcome = Outcome::Complete;
    let confirmed = Action::Confirm { mobile: MOBILE, attachment: 7, outcome, is_first: true };
    assert!(actions(&mut here).contains(&confirmed));
}

#[test]
fn two_that_take_each_other_for_where_the_state_is_do_not_ask_for_ever() {
    let now = Time::ZERO;
    let mut here = station(1);
    here.on_attach(now, MOBILE, &attach(5, 1, 3));
    here.on_reply(MOBILE, Some(Reply::State));
    let request =
        Request { mobile: MOBILE, attach: attach(6, 2, 3), expects: Some(100), incarnation: 200 };
    here.on_request(now, &request, address(2), 7);
    here.on_attach(now, MOBILE, &attach(7, 1, 3));
    actions(&mut here);
    let mut asked = 0;
    loop {
        here.on_reply(MOBILE, Some(Reply::Moved(address(1), 100)));
        match actions(&mut here)[..] {
            [Action::Fetch { .. }] => asked += 1,
            ref last => {
                let outcome = Outcome::Lost;
                let lost =
                    Action::Confirm { mobile: MOBILE, attachment: 7, outcome, is_first: true };
                assert!(last.contains(&lost), "{last:?}");
                break;
            }
        }
    }
    assert!(asked < usize::from(Registry::<u8>::MOST_ASKED), "{asked}");
}

/// It asks in vain, because the host has moved on, and is here again when it learns so.
#[test]
fn a_host_that_is_here_again_when_an_earlier_attachment_is_superseded_is_served() {
    let now = Time::ZERO;
    let mut here = station(1);
    here.on_attach(now, MOBILE, &attach(1, 1, 1));
    let request =
        Request { mobile: MOBILE, attach: attach(2, 2, 1), expects: Some(100), incarnation: 200 };
    here.on_request(now, &request, address(2), 7);
    actions(&mut here);
    let asked = |here: &mut Registry<u8>| match actions(here)[..] {
        [Action::Fetch { from, request }] => (from, request.attach.attachment),
        ref others => panic!("{others:?}"),
    };
    here.on_attach(now, MOBILE, &attach(3, 1, 1));
    assert_eq!(asked(&mut here), (address(2), 3));
    here.on_attach(now, MOBILE, &attach(5, 1, 1));
    assert_eq!(actions(&mut here), []);
    // Station 2 was told of attachment 4 before it was asked about 3.
    here.on_reply(MOBILE, Some(Reply::Superseded));
    assert_eq!(asked(&mut here), (address(2), 5));
    here.on_reply(MOBILE, Some(Reply::State));
    let outcome = Outcome::Complete;
    let confirmed = Action::Confirm { mobile: MOBILE, attachment: 5, outcome, is_first: true };
    assert!(actions(&mut here).contains(&confirmed));
}
