//! The handshake against a published vector, and what binds it.

use super::*;
use crate::session::{decrypt, encrypt};

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The vector of cacophony, an implementation in Haskell, for this pattern and these primitives.
#[test]
fn the_primitives_give_the_published_handshake() {
    let psk: [u8; 32] = *b"This is my Austrian perspective!";
    let end = |secret: &str, remote: &str, ephemeral: &str, is_initiator: bool| {
        let ephemeral = Zeroizing::new(unhex(ephemeral).try_into().unwrap());
        let (secret, remote) = (unhex(secret), unhex(remote));
        let builder =
            Builder::with_resolver(PATTERN.parse().unwrap(), Box::new(Resolver(ephemeral)))
                .prologue(b"John Galt")
                .and_then(|builder| builder.psk(0, &psk))
                .and_then(|builder| builder.local_private_key(&secret))
                .and_then(|builder| builder.remote_public_key(&remote))
                .unwrap();
        if is_initiator { builder.build_initiator() } else { builder.build_responder() }.unwrap()
    };
    let mut initiator = end(
        "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
        "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
        "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        true,
    );
    let mut responder = end(
        "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
        "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a",
        "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
        false,
    );
    let mut carry = |is_first: bool, payload: &str, published: &str| {
        let (from, to) = match is_first {
            true => (&mut initiator, &mut responder),
            false => (&mut responder, &mut initiator),
        };
        let (mut message, mut read) = ([0; 100], [0; 100]);
        let length = from.write_message(&unhex(payload), &mut message).unwrap();
        assert_eq!(message[..length], unhex(published));
        let length = to.read_message(&message[..length], &mut read).unwrap();
        assert_eq!(read[..length], unhex(payload));
    };
    carry(
        true,
        "4c756477696720766f6e204d69736573",
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
             58194aef9daf94528032ad4ded13b6225697dd553d7a6f0db132de223e19e10e",
    );
    carry(
        false,
        "4d757272617920526f746862617264",
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
             ee08e19ab8dc2835b6c580aba78fde40bb812a1c8f807b35c8d76f75c7d698",
    );
    // Then packets, in turn, with numbers from 0 in each direction.
    let packets = [
        ("462e20412e20486179656b", "ac5c301a2f04a2b3701b6f65d273c190f2585df7b0606c9b0a78b6"),
        ("4361726c204d656e676572", "e3dad700cde5cae0215c885113b722d2c820175248c82fabb860eb"),
        (
            "4a65616e2d426170746973746520536179",
            "dd29c6f751610efab58a2e13d705ca7cfa0fe6b2d29dede272d8aa9a23996154\
             21",
        ),
    ];
    let [forward, backward] = split(&mut initiator);
    for (turn, (payload, published)) in packets.into_iter().enumerate() {
        let key = if turn % 2 == 0 { &forward } else { &backward };
        let mut text = unhex(payload);
        let tag = encrypt(&key.cipher, turn as u64 / 2, &[], &mut text).unwrap();
        assert_eq!([&text[..], &tag].concat(), unhex(published));
    }
}

fn identities(psk: [Option<PresharedKey>; 2]) -> [Identity; 2] {
    let [a, b] = [1, 2].map(|n| SecretKey::generate(&mut || Some([n; 32])).unwrap());
    let keys = [a.public(), b.public()];
    let [first, second] = psk;
    [(a, keys[1], first), (b, keys[0], second)]
        .map(|(secret, peer, psk)| Identity::new(&secret, peer, psk.as_ref()).unwrap())
}

const CONTENTS: [Contents; 2] =
    [Contents { index: 1, instance: 2 }, Contents { index: 3, instance: u64::MAX }];

#[test]
fn each_end_learns_what_the_other_says() {
    let [a, b] = identities([None, None]);
    let (mut initiator, first) = a.initiate([3; 32], 9, CONTENTS[0]).unwrap();
    let (theirs, second, responder_keys) = b.respond([4; 32], 9, &first, CONTENTS[1]).unwrap();
    assert_eq!(theirs, CONTENTS[0]);
    let (theirs, keys) = initiator.finish(&second).unwrap();
    assert_eq!(theirs, CONTENTS[1]);
    let mut text = *b"text";
    let tag = encrypt(&keys.seal.cipher, 7, b"header", &mut text).unwrap();
    assert!(!decrypt(&responder_keys.open.cipher, 7, b"HEADER", &mut text, &tag));
    assert!(!decrypt(&responder_keys.seal.cipher, 7, b"header", &mut text, &tag));
    assert!(decrypt(&responder_keys.open.cipher, 7, b"header", &mut text, &tag));
    assert_eq!(&text, b"text");
}

#[test]
fn another_timestamp_or_preshared_key_is_another_handshake() {
    let [a, b] = identities([None, None]);
    let (_, first) = a.initiate([3; 32], 9, CONTENTS[0]).unwrap();
    assert!(b.respond([4; 32], 10, &first, CONTENTS[1]).is_err());
    let psk = PresharedKey::generate(&mut || Some([8; 32]));
    let [_, b] = identities([None, psk]);
    assert!(b.respond([4; 32], 9, &first, CONTENTS[1]).is_err());
}

#[test]
fn a_message_that_is_changed_or_sent_back_is_not_authentic() {
    let [a, b] = identities([None, None]);
    let mut message = vec![5; 70];
    let code = a.authenticate(&mut message);
    assert_eq!(b.check(&message), Some(code));
    assert_eq!(a.check(&message), None, "sent back");
    for bit in 0..message.len() * 8 {
        message[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(b.check(&message), None, "bit {bit}");
        message[bit / 8] ^= 1 << (bit % 8);
    }
    let psk = PresharedKey::generate(&mut || Some([8; 32]));
    let [_, b] = identities([None, psk]);
    assert_eq!(b.check(&message), None, "another preshared key");
}
