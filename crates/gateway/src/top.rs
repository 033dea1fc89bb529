//! A live table of users and connections.

use crate::connections::Seen;
use crate::{Connections, Rates, Status};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The most rows of users, and of connections, where no screen is shorter.
const ROWS: usize = 50;

/// The lines of a table besides those rows.
const FRAME: usize = 6;

/// Shows what the gateway with this control socket carries, each second until `q` or Ctrl-C is pressed; if the
/// output is no terminal, once.
///
/// # Errors
/// If the gateway does not answer, or the terminal cannot be used.
pub fn show(socket: &Path) -> io::Result<()> {
    let mut rates = Rates::default();
    let mut look = || -> io::Result<(Status, Connections, Seen)> {
        let (status, connections) = (crate::status(socket)?, crate::connections(socket)?);
        let seen = rates.next(&connections);
        Ok((status, connections, seen))
    };
    let mut out = io::stdout();
    let mut last = look()?;
    let text = |(status, connections, seen): &_, rows| table(status, connections, seen, rows);
    if !out.is_terminal() || !io::stdin().is_terminal() {
        return out.write_all(text(&last, 2 * ROWS).as_bytes());
    }
    let terminal = |error| io::Error::other(format!("the terminal cannot be used: {error}"));
    let _screen = Screen::enter().map_err(terminal)?;
    loop {
        // The last line says how to end it.
        let (width, height) = crossterm::terminal::size().map_err(terminal)?;
        let rows = usize::from(height).saturating_sub(FRAME + 1);
        draw(&mut out, &text(&last, rows), [width, height]).map_err(terminal)?;
        match key().map_err(terminal)? {
            Key::None => last = look()?,
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
fn draw(out: &mut io::Stdout, text: &str, [width, height]: [u16; 2]) -> io::Result<()> {
    queue!(out, cursor::MoveTo(0, 0))?;
    for line in text.lines().take(height.saturating_sub(1).into()) {
        let shown: String = line.chars().take(width.into()).collect();
        write!(out, "{shown}")?;
        // The cursor waits at the last column of a line that is full: clearing would take that.
        if line.chars().count() < width.into() {
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        write!(out, "\r\n")?;
    }
    queue!(out, Clear(ClearType::FromCursorDown), cursor::MoveTo(0, height.saturating_sub(1)))?;
    write!(out, "q ends")?;
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

/// Users and connections at this moment, with what has changed since the moment before; those with the highest rates
/// come first. There are `rows` rows at most besides the heads: connections leave half of them to the users.
fn table(status: &Status, connections: &Connections, seen: &Seen, rows: usize) -> String {
    let (users, of) = seen;
    let mut text = String::new();
    let draining = if status.draining { ", draining" } else { "" };
    let held = Short(status.gauges.get("held_bytes").copied().unwrap_or(0));
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "lasthopd, mode {}{draining}, up {}: {} connections of {} users, {held} held\n",
        status.mode,
        status.uptime(),
        connections.total,
        users.len(),
    );
    let count = connections.list.len().min(ROWS);
    let count_users = users.len().min(ROWS).min(rows.saturating_sub(count).max(rows / 2));
    let _ =
        writeln!(text, "{:>6} {:>6} {:>6} {:>11} user", "up b/s", "down", "held", "connections");
    let mut users: Vec<_> = users.iter().collect();
    users.sort_by_key(|(_, user)| std::cmp::Reverse(user.up + user.down));
    for (address, user) in users.into_iter().take(count_users) {
        let [up, down] = [user.up, user.down].map(|bytes| Short(bytes * 8).to_string());
        let held = Short(user.held).to_string();
        let _ = writeln!(text, "{up:>6} {down:>6} {held:>6} {:>11} {address}", user.connections);
    }
    let mut listed: Vec<_> = connections.list.iter().zip(of).collect();
    listed.sort_by_key(|(_, [up, down])| std::cmp::Reverse(up + down));
    listed.truncate(ROWS.min(rows - count_users));
    let longest = listed.iter().map(|(connection, _)| connection.client.to_string().len());
    let width = longest.max().unwrap_or(0).max("client".len());
    let _ = writeln!(
        text,
        "\n{:>6} {:>6} {:>6} {:>6} {:<7} {:<width$} server",
        "up b/s", "down", "held", "age", "state", "client"
    );
    for (connection, rates) in listed {
        let [up, down] = rates.map(|bytes| Short(bytes * 8).to_string());
        let held = Short(connection.held).to_string();
        let age = age(connection.age_milliseconds / 1000);
        let client = connection.client.to_string();
        let _ = writeln!(
            text,
            "{up:>6} {down:>6} {held:>6} {age:>6} {:<7} {client:<width$} {}",
            connection.state, connection.server
        );
    }
    text
}

/// A number in five characters at most, if it is less than 100,000 billions.
struct Short(u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Short(number) = *self;
        let (mut unit, mut name) = (1, "");
        for next in ["k", "M", "G", "T"] {
            // As long as it would be rounded to four digits.
            if number < unit * 1000 - unit / 2 {
                break;
            }
            (unit, name) = (unit * 1000, next);
        }
        if unit == 1 {
            return write!(f, "{number}");
        }
        match (number + unit / 20) / (unit / 10) {
            tenths @ 0..1000 => write!(f, "{}.{}{name}", tenths / 10, tenths % 10),
            _ => write!(f, "{}{name}", (number + unit / 2) / unit),
        }
    }
}

/// Seconds, with one unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", seconds / 60),
        6000..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (55_265_696, "55.3M"),
            (99_960, "100k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (123_000_000_000, "123G"),
        ] {
            assert_eq!(Short(number).to_string(), text);
        }
    }
}
