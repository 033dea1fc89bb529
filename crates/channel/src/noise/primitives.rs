//! The primitives of the handshake, as snow asks for them: X25519, AES-256-GCM and BLAKE2s.

use crate::key::KEY;
use crate::session::{TAG, decrypt, encrypt};
use aes_gcm::{Aes256Gcm, KeyInit};
use blake2::{Blake2s256, Digest};
use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

/// Makes what snow needs. It holds the random bytes of one ephemeral key.
pub(super) struct Resolver(pub(super) Zeroizing<[u8; KEY]>);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let is_ours = matches!(choice, DHChoice::Curve25519);
        is_ours.then(|| Box::<X25519>::default() as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        let is_ours = matches!(choice, HashChoice::Blake2s);
        is_ours.then(|| Box::<Blake2s>::default() as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        let is_ours = matches!(choice, CipherChoice::AESGCM);
        is_ours.then(|| Box::new(AesGcm(None)) as Box<dyn Cipher>)
    }
}

/// Random bytes that are given out once.
struct Once(Option<Zeroizing<[u8; KEY]>>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let bytes = self.0.take().ok_or(Error::Rng)?;
        let bytes = bytes.get(..dest.len()).ok_or(Error::Rng)?;
        dest.copy_from_slice(bytes);
        Ok(())
    }
}

/// X25519 (RFC 7748) for snow.
#[derive(Default)]
struct X25519 {
    secret: Zeroizing<[u8; KEY]>,
    public: [u8; KEY],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY
    }

    fn priv_len(&self) -> usize {
        KEY
    }

    fn set(&mut self, privkey: &[u8]) {
        self.secret.copy_from_slice(privkey);
        self.public = MontgomeryPoint::mul_base_clamped(*self.secret).to_bytes();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut secret = Zeroizing::new([0; KEY]);
        rng.try_fill_bytes(&mut *secret)?;
        self.set(&*secret);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.secret
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = *pubkey.first_chunk::<KEY>().ok_or(Error::Dh)?;
        let shared = Zeroizing::new(MontgomeryPoint(public).mul_clamped(*self.secret).to_bytes());
        out.get_mut(..KEY).ok_or(Error::Dh)?.copy_from_slice(&*shared);
        Ok(())
    }
}

/// AES-256-GCM for snow. The cipher wipes its key when it is dropped.
struct AesGcm(Option<Aes256Gcm>);

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; KEY]) {
        self.0 = Some(Aes256Gcm::new(key.into()));
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (text, tag) = out[..plaintext.len() + TAG].split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        // snow sets a key before it encrypts, and messages are far shorter than 64 GiB.
        let sealed = self.0.as_ref().and_then(|cipher| encrypt(cipher, nonce, authtext, text));
        tag.copy_from_slice(&sealed.expect("a key, and a short message"));
        plaintext.len() + TAG
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (text, tag) = ciphertext.split_last_chunk::<TAG>().ok_or(Error::Decrypt)?;
        let out = out.get_mut(..text.len()).ok_or(Error::Decrypt)?;
        out.copy_from_slice(text);
        let cipher = self.0.as_ref().ok_or(Error::Decrypt)?;
        decrypt(cipher, nonce, authtext, out, tag).then_some(text.len()).ok_or(Error::Decrypt)
    }
}

/// BLAKE2s (RFC 7693) for snow.
#[derive(Default)]
pub(super) struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
    }
}
