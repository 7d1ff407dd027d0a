//! The leases that have the key of one node: one lock, or readers.

use super::world::CLIENTS;

/// The owner of a place or a number. A lease on which no client counts, and that sends nothing more, needs no
/// owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ModelToken {
    Over,
    /// An earlier lease of this client, of which a question is still on its way.
    Late(u8),
    /// The current lease of this client.
    Current(u8),
}

const PLACES: usize = 2 * CLIENTS + 1;

/// Several leases that are over are one, because each of them only keeps the key from a lock until it expires.
const TOKENS: [ModelToken; PLACES] = [
    ModelToken::Current(0),
    ModelToken::Current(1),
    ModelToken::Current(2),
    ModelToken::Late(0),
    ModelToken::Late(1),
    ModelToken::Late(2),
    ModelToken::Over,
];

impl ModelToken {
    /// The client of a lease that is not over.
    pub(super) fn client(self) -> Option<usize> {
        match self {
            ModelToken::Over => None,
            ModelToken::Late(client) | ModelToken::Current(client) => Some(usize::from(client)),
        }
    }

    fn place(self) -> usize {
        match self {
            ModelToken::Current(client) => usize::from(client),
            ModelToken::Late(client) => CLIENTS + usize::from(client),
            ModelToken::Over => PLACES - 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Out,
    In,
    /// The vote is older than the current attempt, so that it may expire before the attempt's deadline.
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Inside {
    /// Whether readers have the key.
    is_shared: bool,
    places: [Place; PLACES],
}

impl Inside {
    pub(super) const NOTHING: Self = Self {
        is_shared: false,
        places: [Place::Out; PLACES],
    };

    pub(super) fn is_free(&self) -> bool {
        *self == Self::NOTHING
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(super) fn has(&self, token: ModelToken) -> bool {
        self.places[token.place()] != Place::Out
    }

    /// Returns whether the token has the key, and keeps it at least until the attempt's deadline.
    pub(super) fn keeps(&self, token: ModelToken) -> bool {
        self.places[token.place()] == Place::In
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = ModelToken> + '_ {
        TOKENS.into_iter().filter(|token| self.has(*token))
    }

    /// Lets a lease in, or lengthens it.
    pub(super) fn enter(&mut self, token: ModelToken, is_reader: bool) {
        self.is_shared = is_reader;
        self.places[token.place()] = Place::In;
    }

    pub(super) fn leave(&mut self, token: ModelToken) {
        self.places[token.place()] = Place::Out;
        if self.places == Self::NOTHING.places {
            *self = Self::NOTHING;
        }
    }

    pub(super) fn is_stale_for(&mut self, token: ModelToken) {
        if self.has(token) {
            self.places[token.place()] = Place::Stale;
        }
    }

    pub(super) fn lengthen(&mut self, token: ModelToken) {
        self.places[token.place()] = Place::In;
    }

    pub(super) fn rename(&mut self, from: ModelToken, to: ModelToken) {
        if self.has(from) && from != to {
            self.places[from.place()] = Place::Out;
            self.places[to.place()] = Place::In;
        }
    }

    /// The same with the clients in another order.
    pub(super) fn with_clients_in(&self, order: [usize; CLIENTS]) -> Self {
        let mut places = self.places;
        for (place, client) in order.into_iter().enumerate() {
            places[place] = self.places[client];
            places[CLIENTS + place] = self.places[CLIENTS + client];
        }
        Self { places, ..*self }
    }
}
