//! TCP sockets of the kernel, with a congestion control of the caller's choice.
//!
//! It is chosen before the handshake, and connections inherit it from their listener. Chosen later,
//! it would leave the pacing on that BBR, the default of some kernels, starts with its connection:
//! a socket's pacing status never goes back (Linux's `sk_pacing_status`).

use socket2::{Domain, SockRef, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

fn socket(end: SocketAddr, control: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(end), Type::STREAM, None)?;
    socket.set_tcp_congestion(control.as_bytes())?;
    Ok(socket)
}

/// A listener whose connections have the congestion control `control`.
pub(crate) fn listen(local: SocketAddr, control: &str) -> io::Result<TcpListener> {
    let socket = socket(local, control)?;
    socket.set_reuse_address(true)?;
    socket.bind(&local.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

/// A connection of [`listen`].
pub(crate) fn accept(listener: &TcpListener, control: &str) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    check(&stream, control)?;
    Ok(stream)
}

/// A connection to `remote` with the congestion control `control`.
pub(crate) fn connect(remote: SocketAddr, control: &str) -> io::Result<TcpStream> {
    let socket = socket(remote, control)?;
    socket.connect(&remote.into())?;
    let stream = socket.into();
    check(&stream, control)?;
    Ok(stream)
}

/// Checks the congestion control of a connection that was just established. A connection that has
/// `control` then never had another, so no pacing is on.
fn check(stream: &TcpStream, control: &str) -> io::Result<()> {
    let name = SockRef::from(stream).tcp_congestion()?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    if name == control.as_bytes() {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    Err(io::Error::other(format!("congestion control is {name}, not {control}")))
}
