//! Shares of a key: readers beside readers, and permits beside permits.

use super::{Document, Hold, Millis, Phase};
use crate::base::share::ShareLimit;
use crate::base::token::Token;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Shares {
    pub(crate) inside: Vec<Place>,
    /// The end of the key: that of its latest share, as it was last set.
    pub(crate) ends: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Place {
    pub(crate) token: Token,
    pub(crate) ends: Millis,
    /// An operator has freed the share, and its place stays taken for a while.
    pub(crate) is_freed: bool,
}

impl Shares {
    /// A second share beside the first. The end of the first is a millisecond later than before, because a server of an
    /// earlier version may compute it from a later reading of its clock.
    fn beside(first: Hold, token: Token, ends: Millis) -> Self {
        let first = Place {
            token: first.token,
            ends: first.ends + 1,
            is_freed: false,
        };
        let second = Place {
            token,
            ends,
            is_freed: false,
        };
        Self {
            inside: vec![first, second],
            ends: first.ends.max(ends),
        }
    }

    pub(crate) fn latest(&self) -> Option<Millis> {
        self.inside.iter().map(|place| place.ends).max()
    }

    pub(crate) fn earliest(&self) -> Option<Millis> {
        self.inside.iter().map(|place| place.ends).min()
    }

    pub(crate) fn place_of(&mut self, token: Token) -> Option<&mut Place> {
        let mut places = self.inside.iter_mut();
        places.find(|place| place.token == token && !place.is_freed)
    }
}

impl Document {
    /// Removes the shares that have ended beside others. Only operations that let shares in do this.
    pub(crate) fn settle_shares(&mut self, now: Millis) {
        if let Phase::Shared(shares) = &mut self.phase {
            shares.inside.retain(|place| now <= place.ends);
            if shares.inside.is_empty() {
                self.phase = Phase::Free;
            }
        }
    }

    pub(crate) fn is_inside(&mut self, token: Token) -> bool {
        match &mut self.phase {
            Phase::Shared(shares) => shares.place_of(token).is_some(),
            _ => self.hold_of(token).is_some(),
        }
    }

    /// Returns whether one share or several have the key.
    pub(crate) fn is_shared(&self) -> bool {
        match &self.phase {
            Phase::Free | Phase::Closed(_) => false,
            Phase::Held(hold) => hold.token.share().is_some(),
            Phase::Shared(_) => true,
        }
    }

    /// Returns whether a token may have the key beside the present owners.
    pub(crate) fn fits(&self, token: Token) -> bool {
        self.is_free() || self.is_beside_its_kind(token) && !self.is_full_for(token)
    }

    /// Returns whether the owners are shares of the same kind: all readers, or all permits.
    pub(crate) fn is_beside_its_kind(&self, token: Token) -> bool {
        let kind = |token: Token| token.share().map(ShareLimit::is_reader);
        let other = match &self.phase {
            Phase::Free | Phase::Closed(_) => return false,
            Phase::Held(hold) => hold.token,
            Phase::Shared(shares) => match shares.inside.iter().find(|place| !place.is_freed) {
                Some(place) => place.token,
                // The places of freed shares are of any kind.
                None => token,
            },
        };
        kind(token).is_some() && kind(token) == kind(other)
    }

    /// Returns whether the key has as many owners as the limit of this share.
    pub(crate) fn is_full_for(&self, token: Token) -> bool {
        let inside = match &self.phase {
            Phase::Free => 0,
            Phase::Held(_) | Phase::Closed(_) => 1,
            Phase::Shared(shares) => shares.inside.len(),
        };
        let limit = token.share().map_or(1, ShareLimit::count);
        u32::try_from(inside).is_ok_and(|inside| inside >= limit)
    }

    /// Lets a token in until `ends`, or lengthens its lease.
    pub(crate) fn enter(&mut self, token: Token, ends: Millis) {
        match &mut self.phase {
            Phase::Held(hold) if hold.token == token => hold.ends = hold.ends.max(ends),
            Phase::Held(hold) => {
                self.phase = Phase::Shared(Shares::beside(*hold, token, ends));
            }
            Phase::Shared(shares) => {
                match shares.place_of(token) {
                    Some(place) => place.ends = place.ends.max(ends),
                    None => shares.inside.push(Place {
                        token,
                        ends,
                        is_freed: false,
                    }),
                }
                shares.ends = shares.ends.max(ends);
            }
            Phase::Free | Phase::Closed(_) => self.phase = Phase::Held(Hold { token, ends }),
        }
    }

    /// Removes a lock or a share. Returns by how much the key ends sooner, if the token was an owner.
    pub(crate) fn remove(&mut self, token: Token) -> Option<Millis> {
        if self.free(token) {
            return Some(0);
        }
        let Phase::Shared(shares) = &mut self.phase else {
            return None;
        };
        shares.place_of(token)?;
        shares
            .inside
            .retain(|place| place.is_freed || place.token != token);
        let Some(latest) = shares.latest() else {
            self.phase = Phase::Free;
            return Some(0);
        };
        let sooner = shares.ends.saturating_sub(latest);
        shares.ends = latest;
        Some(sooner)
    }
}
