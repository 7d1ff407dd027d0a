//! Decides which expressions a placeholder accepts, and finds the names that they read.
//!
//! A key identifies the locked resource. Code that decides, waits or fails belongs into the body, so
//! comparisons, blocks, closures, macros, `.await` and `?` are refused.

use proc_macro2::Span;
use syn::{BinOp, Expr, Ident, UnOp};

/// Checks an expression. The error names the refused part, for use after "contains".
pub(crate) fn check(expr: &Expr) -> Result<(), &'static str> {
    let allowed = match expr {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Field(_) | Expr::Index(_) | Expr::Call(_) | Expr::MethodCall(_) => true,
        Expr::Paren(_) | Expr::Group(_) | Expr::Cast(_) | Expr::Reference(_) | Expr::Range(_) => {
            true
        }
        Expr::Unary(unary) => match unary.op {
            UnOp::Deref(_) | UnOp::Neg(_) => true,
            _ => return Err("logic (`!`)"),
        },
        Expr::Binary(binary) => is_arithmetic(&binary.op)?,
        _ => false,
    };
    if !allowed {
        return Err(name(expr));
    }
    children(expr).into_iter().try_for_each(check)
}

/// Returns the names that the expression reads: `line` for `line.sku`, `a` and `b` for `a + b.len()`.
///
/// It leaves out paths with `::` and the names of called functions.
pub(crate) fn roots(expr: &Expr) -> Vec<&Ident> {
    if let Expr::Path(path) = expr {
        return path
            .path
            .get_ident()
            .filter(|_| path.qself.is_none())
            .into_iter()
            .collect();
    }
    let called = match expr {
        Expr::Call(call) => Some(&*call.func),
        _ => None,
    };
    children(expr)
        .into_iter()
        .filter(|child| {
            !called.is_some_and(|called| {
                std::ptr::eq(called, *child) && matches!(called, Expr::Path(_))
            })
        })
        .flat_map(roots)
        .collect()
}

/// Finds an `.await`, a `?` or a `return` in the part of an expression that is evaluated at once.
///
/// The arguments are evaluated in a closure, which permits none of these.
pub(crate) fn leaves(expr: &Expr) -> Option<(Span, &'static str)> {
    match expr {
        Expr::Await(wait) => Some((wait.await_token.span, "wait")),
        Expr::Try(failing) => Some((failing.question_token.span, "return early")),
        Expr::Return(jump) => Some((jump.return_token.span, "return early")),
        _ => children(expr).into_iter().find_map(leaves),
    }
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Field(field) => vec![&field.base],
        Expr::Index(index) => vec![&index.expr, &index.index],
        Expr::Call(call) => std::iter::once(&*call.func).chain(&call.args).collect(),
        Expr::MethodCall(call) => std::iter::once(&*call.receiver).chain(&call.args).collect(),
        Expr::Paren(paren) => vec![&paren.expr],
        Expr::Group(group) => vec![&group.expr],
        Expr::Cast(cast) => vec![&cast.expr],
        Expr::Reference(reference) => vec![&reference.expr],
        Expr::Range(range) => range
            .start
            .iter()
            .chain(&range.end)
            .map(|end| &**end)
            .collect(),
        Expr::Unary(unary) => vec![&unary.expr],
        Expr::Binary(binary) => vec![&binary.left, &binary.right],
        Expr::Try(failing) => vec![&failing.expr],
        Expr::Await(wait) => vec![&wait.base],
        _ => Vec::new(),
    }
}

fn is_arithmetic(op: &BinOp) -> Result<bool, &'static str> {
    match op {
        BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_) => Ok(true),
        BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitXor(_) | BinOp::Shl(_) | BinOp::Shr(_) => {
            Ok(true)
        }
        BinOp::And(_) | BinOp::Or(_) => Err("logic (`&&`, `||`)"),
        BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => {
            Err("a comparison")
        }
        _ => Err("an assignment"),
    }
}

fn name(expr: &Expr) -> &'static str {
    match expr {
        Expr::Await(_) => "`.await`",
        Expr::Try(_) => "`?`",
        Expr::Infer(_) => "`_`, which is not a name",
        Expr::If(_) => "`if`",
        Expr::Match(_) => "`match`",
        Expr::Block(_) | Expr::Unsafe(_) | Expr::Async(_) | Expr::Const(_) => "a block",
        Expr::Closure(_) => "a closure",
        Expr::Macro(_) => "a macro",
        Expr::Assign(_) => "an assignment",
        Expr::Struct(_) => "a struct",
        Expr::Array(_) | Expr::Repeat(_) => "an array",
        Expr::Tuple(_) => "a tuple",
        Expr::Loop(_) | Expr::While(_) | Expr::ForLoop(_) => "a loop",
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => "a jump",
        _ => "an expression that is not a plain value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots_of(source: &str) -> Vec<String> {
        let expr: Expr = syn::parse_str(source).expect(source);
        roots(&expr).into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_roots_are_the_names_a_value_is_read_from() {
        assert_eq!(roots_of("uid"), ["uid"]);
        assert_eq!(roots_of("line.sku"), ["line"]);
        assert_eq!(roots_of("a + b.len() * c[d]"), ["a", "b", "c", "d"]);
        assert_eq!(roots_of("self.id"), ["self"]);
    }

    #[test]
    fn functions_and_paths_are_not_roots() {
        assert_eq!(roots_of("key_of(&user)"), ["user"]);
        assert_eq!(roots_of("config::REGION"), [""; 0]);
        assert_eq!(roots_of("Kind::of(x).name()"), ["x"]);
    }
}
