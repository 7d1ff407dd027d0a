//! A model of tickets: every order of messages between an owner, the users of its ticket, and another client.
//!
//! The server runs [`protocol`](crate::protocol), as the embedded store does. Messages arrive in any order, twice, late or
//! never. Time does not pass by itself: a lease or a ticket may run out at any moment at which its owner does not believe
//! in it.

use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::protocol::{
    Acquire, Around, Document, End, Ended, Hold, Operation, Phase, Reply, Way, step,
};

/// The time of the server's clock in microseconds, and the ttl of each lease in milliseconds.
const NOW: u64 = 1_000_000;
const TTL: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TicketFault {
    /// The ticket is the token of the first owner.
    TokenAsTicket,
    /// A swap replaces any token.
    SwapDoesNotCompare,
    /// A swap sets a key that is absent.
    SwapCreates,
    /// A second copy of a swap is refused, because the first token is gone.
    SecondCopyRefused,
    /// A swap without an answer is not undone.
    SwapNotUndone,
    /// The undoing begins with the second token.
    SecondTokenFirst,
}

use TicketFault::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TicketWrong {
    /// Two clients believe that they own the key.
    TwoOwners,
    /// An owner begins although the key is not its own.
    OwnerWithoutKey,
    /// Two callers have used one ticket.
    UsedTwice,
    /// A token stays in the key, and no client knows of it.
    Orphan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    First,
    Ticket,
    /// The lease of the user with this number.
    Next(usize),
    Stranger,
}

impl Value {
    const FIRST_USER: u8 = 4;

    fn token(self) -> Token {
        let mut bytes = [0; 24];
        bytes[23] = match self {
            Value::First => 1,
            Value::Ticket => 2,
            Value::Stranger => 3,
            Value::Next(user) => Self::FIRST_USER + u8::try_from(user).unwrap_or(u8::MAX),
        };
        Token::from_bytes(bytes)
    }

    fn of(token: Token) -> Self {
        match token.bytes()[23] {
            1 => Value::First,
            2 => Value::Ticket,
            3 => Value::Stranger,
            user => Value::Next((user - Self::FIRST_USER).into()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Swap { from: Value, to: Value, by: usize },
    Swapped { yes: bool, to: usize },
    Release { token: Value, by: usize },
    Released { token: Value, to: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Client {
    /// It has not asked yet.
    Idle,
    Owner,
    Swapping,
    /// It releases these tokens one after the other, each until it has the answer.
    GivingBack(Vec<Value>),
    Done,
}

use Client::*;

/// Client 0 is the first owner, and the others use its ticket.
#[derive(Clone, Debug, Hash)]
struct Tickets {
    document: Document,
    messages: Vec<Message>,
    clients: Vec<Client>,
    /// The ticket is out.
    is_out: bool,
    stranger: Client,
    uses: usize,
    /// How many messages may still be lost, and how many may still be sent twice.
    losses: usize,
    doubles: usize,
}

#[derive(Clone, Copy)]
struct Bounds {
    users: usize,
    losses: usize,
    doubles: usize,
    fault: Option<TicketFault>,
}

impl Tickets {
    fn new(bounds: Bounds) -> Self {
        let mut clients = vec![Idle; 1 + bounds.users];
        clients[0] = Owner;
        let mut world = Self {
            document: Document::default(),
            messages: Vec::new(),
            clients,
            is_out: false,
            stranger: Idle,
            uses: 0,
            losses: bounds.losses,
            doubles: bounds.doubles,
        };
        world.is_taken(Value::First);
        world
    }

    /// Returns the value of the key.
    fn value(&self) -> Option<Value> {
        match self.document.phase {
            Phase::Held(hold) => Some(Value::of(hold.token)),
            _ => None,
        }
    }

    /// The end of the key passes.
    fn expires(&mut self) {
        self.document.phase = Phase::Free;
    }

    /// Runs an operation on the server.
    fn run(&mut self, operation: &Operation) -> Reply {
        let mut around = Around::new(ServerTime(NOW), 0, &|_| true);
        step(&mut self.document, operation, &mut around)
    }

    /// A client takes the free key.
    fn is_taken(&mut self, value: Value) {
        self.run(&Operation::Acquire(Acquire {
            token: value.token(),
            ttl: TTL,
            grant: TTL,
            waits: false,
            replaces: None,
            used: None,
        }));
    }

    fn is_released(&mut self, value: Value) {
        self.run(&Operation::End(End {
            token: value.token(),
            fence: None,
            way: Way::Release,
        }));
    }

    /// The swap of a client.
    fn swap(by: usize) -> (Value, Value) {
        match by {
            0 => (Value::First, Value::Ticket),
            user => (Value::Ticket, Value::Next(user)),
        }
    }

    fn send(&mut self, message: Message) {
        self.messages.push(message);
        self.messages.sort_unstable();
    }

    fn ask(&mut self, by: usize) {
        self.clients[by] = Swapping;
        let (from, to) = Self::swap(by);
        self.send(Message::Swap { from, to, by });
    }

    /// The client gives these tokens back.
    fn give_back(&mut self, by: usize, tokens: Vec<Value>) {
        let Some(token) = tokens.first().copied() else {
            self.clients[by] = Done;
            return;
        };
        self.clients[by] = GivingBack(tokens);
        self.send(Message::Release { token, by });
    }

    fn give_up(&mut self, by: usize, fault: Option<TicketFault>) {
        let (from, to) = Self::swap(by);
        self.give_back(
            by,
            match fault {
                Some(SwapNotUndone) => Vec::new(),
                Some(SecondTokenFirst) => vec![to, from],
                _ => vec![from, to],
            },
        );
    }

    /// All states that may follow.
    fn next(&self, bounds: Bounds) -> Result<Vec<Self>, TicketWrong> {
        let mut all = Vec::new();
        let mut step = |act: &dyn Fn(&mut Self)| {
            let mut after = self.clone();
            act(&mut after);
            all.push(after);
        };
        let fault = bounds.fault;
        for (by, client) in self.clients.iter().enumerate() {
            match client {
                Owner if by == 0 && fault == Some(TokenAsTicket) => step(&|world| {
                    world.clients[0] = Done;
                    world.is_out = true;
                }),
                Owner if by == 0 => step(&|world| world.ask(0)),
                Owner => step(&|world| world.give_back(by, vec![Value::Next(by)])),
                Idle if self.is_out => step(&|world| world.ask(by)),
                Swapping => {
                    step(&|world| world.give_up(by, fault));
                    if self.doubles > 0 {
                        step(&|world| {
                            world.doubles -= 1;
                            world.ask(by);
                        });
                    }
                    // Its ttl is over before it has heard of the grant.
                    if by > 0 && self.value() == Some(Value::Next(by)) {
                        step(&|world| {
                            world.expires();
                            world.give_up(by, fault);
                        });
                    }
                }
                GivingBack(tokens) if !self.is_underway(by) => {
                    step(&|world| world.give_back(by, tokens.clone()));
                }
                _ => {}
            }
        }
        if self.value() == Some(Value::Ticket) && self.is_out {
            step(&|world| world.expires());
        }
        match self.stranger {
            Idle if self.value().is_none() => step(&|world| {
                world.is_taken(Value::Stranger);
                world.stranger = Owner;
            }),
            Owner => step(&|world| {
                world.is_released(Value::Stranger);
                world.stranger = Done;
            }),
            _ => {}
        }
        for (index, message) in self.messages.iter().enumerate() {
            let mut without = self.clone();
            without.messages.remove(index);
            if self.losses > 0 {
                let losses = self.losses - 1;
                all.push(Self {
                    losses,
                    ..without.clone()
                });
            }
            without.arrives(*message, fault)?;
            all.push(without);
        }
        Ok(all)
    }

    /// Returns whether an answer to the release of this client may still come.
    fn is_underway(&self, client: usize) -> bool {
        self.messages.iter().any(|message| {
            matches!(message, Message::Release { by, .. } if *by == client)
                || matches!(message, Message::Released { to, .. } if *to == client)
        })
    }

    fn arrives(&mut self, message: Message, fault: Option<TicketFault>) -> Result<(), TicketWrong> {
        match message {
            Message::Swap { from, to, by } => {
                let yes = self.server_swaps(from, to, fault);
                self.send(Message::Swapped { yes, to: by });
            }
            Message::Release { token, by } => {
                self.is_released(token);
                self.send(Message::Released { token, to: by });
            }
            Message::Swapped { yes, to } if self.clients[to] == Swapping => match (yes, to) {
                (false, _) => self.clients[to] = Done,
                (true, 0) => {
                    self.clients[0] = Done;
                    self.is_out = true;
                }
                (true, user) => {
                    self.clients[user] = Owner;
                    self.uses += 1;
                    let token = match fault {
                        Some(TokenAsTicket) => Value::First,
                        _ => Value::Next(user),
                    };
                    if self.value() != Some(token) {
                        return Err(TicketWrong::OwnerWithoutKey);
                    }
                }
            },
            Message::Released { token, to } => {
                if let GivingBack(tokens) = &self.clients[to]
                    && tokens.first() == Some(&token)
                {
                    let rest = tokens[1..].to_vec();
                    self.give_back(to, rest);
                }
            }
            Message::Swapped { .. } => {}
        }
        Ok(())
    }

    /// Runs a swap, with a fault around it.
    fn server_swaps(&mut self, from: Value, to: Value, fault: Option<TicketFault>) -> bool {
        let (mut from, value) = (from.token(), self.value());
        match (fault, value) {
            (Some(TokenAsTicket), Some(Value::First)) => return true,
            (Some(SecondCopyRefused), Some(value)) if value == to => return false,
            (Some(SwapDoesNotCompare), Some(value)) => from = value.token(),
            (Some(SwapCreates), None) => {
                let (token, ends) = (from, u64::MAX);
                self.document.phase = Phase::Held(Hold { token, ends });
            }
            _ => {}
        }
        let (to, ttl) = (to.token(), TTL);
        self.run(&Operation::Swap {
            from,
            to,
            ttl,
            fence: None,
        }) == Reply::Done(Ended::Yes)
    }

    fn check(&self, fault: Option<TicketFault>) -> Result<(), TicketWrong> {
        let owners = self.clients.iter().chain([&self.stranger]);
        if owners.filter(|client| **client == Owner).count() > 1 {
            return Err(TicketWrong::TwoOwners);
        }
        if self.uses > 1 {
            return Err(TicketWrong::UsedTwice);
        }
        let rests = |client: &Client| matches!(client, Idle | Owner | Done);
        let known = match self.value() {
            None | Some(Value::Stranger) => true,
            Some(Value::First) if fault == Some(TokenAsTicket) => true,
            Some(Value::First) => self.clients[0] == Owner,
            Some(Value::Ticket) => self.is_out,
            Some(Value::Next(user)) => self.clients[user] == Owner,
        };
        if self.messages.is_empty() && self.clients.iter().all(rests) && !known {
            return Err(TicketWrong::Orphan);
        }
        Ok(())
    }
}

#[path = "ticket_tests.rs"]
mod tests;
