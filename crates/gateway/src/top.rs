//! A live table of users and connections.

use crate::{Connections, Rates, Status};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The most rows of users, and of connections where the screen is not shorter.
const ROWS: usize = 50;

/// Shows what the gateway with this control socket carries, each second until `q` or Ctrl-C is pressed; if the
/// output is no terminal, once.
///
/// # Errors
/// If the gateway does not answer, or the terminal cannot be used.
pub fn show(socket: &Path) -> io::Result<()> {
    let mut rates = Rates::default();
    let mut look = || -> io::Result<String> {
        Ok(table(&crate::status(socket)?, &crate::connections(socket)?, &mut rates))
    };
    let first = look()?;
    let mut out = io::stdout();
    if !out.is_terminal() || !io::stdin().is_terminal() {
        return out.write_all(first.as_bytes());
    }
    let terminal = |error| io::Error::other(format!("the terminal cannot be used: {error}"));
    let _screen = Screen::enter().map_err(terminal)?;
    let mut text = first;
    loop {
        draw(&mut out, &text).map_err(terminal)?;
        match key().map_err(terminal)? {
            Key::None => text = look()?,
            Key::End => return Ok(()),
            Key::Other => {}
        }
    }
}

enum Key {
    None,
    End,
    Other,
}

/// What is pressed until it is time to look again.
fn key() -> io::Result<Key> {
    if !poll(PERIOD)? {
        return Ok(Key::None);
    }
    let Event::Key(key) = read()? else { return Ok(Key::Other) };
    let ends = key.code == KeyCode::Char('q')
        || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL));
    Ok(if ends { Key::End } else { Key::Other })
}

/// As much of a text as the terminal has room for.
fn draw(out: &mut io::Stdout, text: &str) -> io::Result<()> {
    let (width, height) = crossterm::terminal::size()?;
    queue!(out, cursor::MoveTo(0, 0))?;
    for line in text.lines().take(height.saturating_sub(1).into()) {
        let shown: String = line.chars().take(width.into()).collect();
        write!(out, "{shown}")?;
        queue!(out, Clear(ClearType::UntilNewLine))?;
        write!(out, "\r\n")?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()
}

/// The terminal without lines and echo, until this is dropped.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Screen> {
        enable_raw_mode()?;
        let screen = Screen;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Users and connections at this moment; those with the highest rates come first.
#[must_use]
pub fn table(status: &Status, connections: &Connections, rates: &mut Rates) -> String {
    let (users, of) = rates.next(connections);
    let mut text = String::new();
    let draining = if status.draining { ", draining" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "lasthopd, mode {}{draining}: {} connections of {} users, {} bytes held\n",
        status.mode,
        connections.total,
        users.len(),
        status.gauges.get("held_bytes").unwrap_or(&0)
    );
    let _ = writeln!(
        text,
        "{:<40} {:>11} {:>12} {:>12} {:>12}",
        "user", "connections", "up, bit/s", "down, bit/s", "held"
    );
    let mut users: Vec<_> = users.into_iter().collect();
    users.sort_by_key(|(_, user)| std::cmp::Reverse(user.up + user.down));
    for (address, user) in users.iter().take(ROWS) {
        let _ = writeln!(
            text,
            "{:<40} {:>11} {:>12} {:>12} {:>12}",
            address.to_string(),
            user.connections,
            user.up * 8,
            user.down * 8,
            user.held
        );
    }
    let _ = writeln!(
        text,
        "\n{:<24} {:<24} {:<8} {:>8} {:>12} {:>12} {:>10}",
        "client", "server", "state", "age, s", "up, bit/s", "down, bit/s", "held"
    );
    let mut rows: Vec<_> = connections.list.iter().zip(of).collect();
    rows.sort_by_key(|(_, [up, down])| std::cmp::Reverse(up + down));
    for (connection, [up, down]) in rows.into_iter().take(ROWS) {
        let _ = writeln!(
            text,
            "{:<24} {:<24} {:<8} {:>8} {:>12} {:>12} {:>10}",
            connection.client.to_string(),
            connection.server.to_string(),
            connection.state,
            connection.age_milliseconds / 1000,
            up * 8,
            down * 8,
            connection.held
        );
    }
    text
}
