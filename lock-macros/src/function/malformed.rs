//! Detects parameters that the compiler refuses: `uid)`, `a: )`, `*name`.
//!
//! The compiler reports them before it expands the attribute. An error of the attribute's parser would be
//! a second one for the same mistake.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Returns whether a parameter of the function has no type or begins with a `*`.
pub(crate) fn has_malformed_parameters(item: &TokenStream) -> bool {
    parameters(item).is_some_and(|parameters| parameters.iter().any(|it| is_malformed(it)))
}

/// Returns the tokens of each parameter.
fn parameters(item: &TokenStream) -> Option<Vec<Vec<TokenTree>>> {
    let mut trees = item.clone().into_iter();
    trees.find(|tree| matches!(tree, TokenTree::Ident(word) if word == "fn"))?;
    let mut angles = Angles::default();
    let list = trees.find_map(|tree| match tree {
        TokenTree::Group(group) if angles.depth == 0 => Some(group),
        tree => {
            angles.pass(&tree);
            None
        }
    })?;
    if list.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let mut angles = Angles::default();
    let mut parameters = vec![Vec::new()];
    for tree in list.stream() {
        angles.pass(&tree);
        if angles.depth == 0 && is(&tree, ',') {
            parameters.push(Vec::new());
        } else {
            parameters.last_mut()?.push(tree);
        }
    }
    // A trailing comma leaves an empty parameter.
    parameters.retain(|it| !it.is_empty());
    Some(parameters)
}

/// Counts the open `<`.
#[derive(Default)]
struct Angles {
    depth: usize,
    /// The last token was the `-` of `->`.
    arrow: bool,
}

impl Angles {
    fn pass(&mut self, tree: &TokenTree) {
        if is(tree, '<') {
            self.depth += 1;
        } else if is(tree, '>') && !self.arrow {
            self.depth = self.depth.saturating_sub(1);
        }
        self.arrow = is(tree, '-');
    }
}

fn is(tree: &TokenTree, sign: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_malformed(parameter: &[TokenTree]) -> bool {
    let mut rest = parameter;
    while let [sign, TokenTree::Group(_), after @ ..] = rest
        && is(sign, '#')
    {
        rest = after;
    }
    let receiver = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "self");
    if rest.iter().take(5).any(receiver) {
        return false;
    }
    if rest.first().is_none_or(|first| is(first, '*')) {
        return true;
    }
    let mut before = false;
    for (index, tree) in rest.iter().enumerate() {
        let TokenTree::Punct(punct) = tree else {
            before = false;
            continue;
        };
        let half_of_a_path = before || punct.spacing() == Spacing::Joint;
        if punct.as_char() == ':' && !half_of_a_path {
            return index + 1 == rest.len();
        }
        before = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(parameters: &str) -> bool {
        let item = format!("pub async fn f<T: Fn(u8) -> u8>({parameters}) -> u8 {{ 1 }}");
        has_malformed_parameters(&item.parse().expect("tokens"))
    }

    #[test]
    fn malformed_parameters_are_found_and_valid_ones_are_not() {
        for parameters in [
            "uid",
            "a: u8, uid",
            "a: ",
            "*name",
            "*name: u8",
            "a: u8, b:",
            "#[x] a",
        ] {
            assert!(judge(parameters), "{parameters}");
        }
        for parameters in [
            "",
            "a: u8",
            "a: u8,",
            "self",
            "&self",
            "&'a mut self, b: u8",
            "mut self: Box<Self>",
            "#[x] a: u8",
            "Path(id): Path<u64>",
            "axum::Json(cart): axum::Json<Cart>",
            "map: HashMap<u8, u16>, f: fn(u8) -> u16",
            "f: impl Fn() -> u8, [a, b]: [u8; 2]",
            "_: u8, (a, b): (u8, u8)",
            "Point { x, y }: Point",
            "a: ::std::string::String",
        ] {
            assert!(!judge(parameters), "{parameters}");
        }
    }
}
