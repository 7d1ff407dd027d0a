//! Encrypts records before they are stored.

/// Encrypts and decrypts the records of a layer, for stores that others can read.
///
/// A record holds the answer of a handler: status, some headers and the body. Without a seal it stands
/// in the store as it is. The cipher, its keys and their rotation are the application's. Use
/// authenticated encryption, such as AES-GCM or XChaCha20-Poly1305, and pass `context` as associated
/// data. The context is the name of the lock, so a record that was moved to another key does not open. In a database it is
/// the number of the operation.
///
/// # Examples
///
/// ```
/// use lock_tower::{Replay, Seal};
///
/// # struct Cipher;
/// # impl Cipher {
/// #     fn encrypt(&self, _: &[u8], plain: &[u8]) -> Result<Vec<u8>, ()> { Ok(plain.to_vec()) }
/// #     fn decrypt(&self, _: &[u8], sealed: &[u8]) -> Result<Vec<u8>, ()> { Ok(sealed.to_vec()) }
/// # }
/// struct Sealed(Cipher);
///
/// impl Seal for Sealed {
///     fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
///         self.0.encrypt(context, plain).ok()
///     }
///
///     fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
///         self.0.decrypt(context, sealed).ok()
///     }
/// }
///
/// let replay = Replay::default().sealed(Sealed(Cipher));
/// # let _ = replay;
/// ```
pub trait Seal: Send + Sync + 'static {
    /// Encrypts a record. After `None`, the request counts as done and its answer is not kept.
    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>>;

    /// Decrypts a record. After `None`, the duplicate is refused, and the handler does not run.
    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>>;
}
