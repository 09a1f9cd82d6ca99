//! The schema that the parser of documents uses. It has no fields. Therefore arguments have no
//! known types, and juniper accepts any literal for them. The scalars of the schema keep the text
//! of a string or a number, and prepend a marker letter that distinguishes the two.

use juniper::parser::{ParseError, ScalarToken, Token};
use juniper::{
    EmptyMutation, EmptySubscription, FromInputValue, GraphQLType, GraphQLValue, InputValue,
    ParseScalarResult, ParseScalarValue, Registry, RootNode, arcstr, meta,
};

use super::Scalar;

/// The letter that a scalar of this schema prepends to the text of a string.
pub(super) const STRING: char = 's';
/// The letter that a scalar of this schema prepends to the text of a number.
pub(super) const NUMBER: char = 'n';

/// The deepest nesting of selection sets, lists and objects that is parsed.
const DEPTH: usize = 64;
/// The largest number of tokens, enough for an insert of a few thousand rows as literals.
const TOKENS: usize = 200_000;
/// The largest number of fields in an operation with its fragments. The API's own limit is far
/// lower.
const FIELDS: usize = 5_000;

pub(super) type Root = RootNode<ParsingRoot, EmptyMutation, EmptySubscription, Scalar>;

/// Creates the schema that the parser of documents uses.
pub(super) fn root() -> Root {
    RootNode::new(ParsingRoot, EmptyMutation::new(), EmptySubscription::new())
        .limit_depth(DEPTH)
        .limit_tokens(TOKENS)
        .limit_fields(FIELDS)
}

pub(super) struct ParsingRoot;

impl GraphQLType<Scalar> for ParsingRoot {
    fn name((): &()) -> Option<arcstr::ArcStr> {
        Some(arcstr::literal!("Blank"))
    }

    fn meta(info: &(), registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        // These scalars must be registered first. Otherwise juniper would register its own scalars
        // under these names.
        registry.get_type::<LiteralText>(&"String");
        registry.get_type::<LiteralText>(&"Int");
        registry.get_type::<LiteralText>(&"Float");
        registry.build_object_type::<Self>(info, &[]).into_meta()
    }
}

impl GraphQLValue<Scalar> for ParsingRoot {
    type Context = ();
    type TypeInfo = ();

    fn type_name(&self, info: &()) -> Option<arcstr::ArcStr> {
        <Self as GraphQLType<Scalar>>::name(info)
    }
}

/// A scalar that keeps the text of a literal.
struct LiteralText;

impl GraphQLType<Scalar> for LiteralText {
    fn name(name: &&'static str) -> Option<arcstr::ArcStr> {
        Some((*name).into())
    }

    fn meta(name: &&'static str, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        registry.build_scalar_type::<Self>(name).into_meta()
    }
}

impl GraphQLValue<Scalar> for LiteralText {
    type Context = ();
    type TypeInfo = &'static str;

    fn type_name(&self, name: &&'static str) -> Option<arcstr::ArcStr> {
        <Self as GraphQLType<Scalar>>::name(name)
    }
}

impl FromInputValue<Scalar> for LiteralText {
    type Error = String;

    fn from_input_value(_: &InputValue<Scalar>) -> Result<Self, String> {
        Ok(Self)
    }
}

impl ParseScalarValue<Scalar> for LiteralText {
    fn from_str(token: ScalarToken<'_>) -> ParseScalarResult<Scalar> {
        let (mark, text) = match token {
            ScalarToken::String(literal) => (STRING, literal.parse()?),
            ScalarToken::Int(digits) | ScalarToken::Float(digits) if leading_zero(digits) => {
                return Err(ParseError::unexpected_token(Token::Scalar(token)));
            }
            ScalarToken::Int(digits) | ScalarToken::Float(digits) => (NUMBER, digits.into()),
        };
        Ok(Scalar::String(format!("{mark}{text}")))
    }
}

/// Whether a number begins with a superfluous zero: `01` is not a number (GraphQL, section 2.9.1).
fn leading_zero(digits: &str) -> bool {
    let digits = digits.strip_prefix('-').unwrap_or(digits);
    digits.starts_with('0') && digits[1..].starts_with(|next: char| next.is_ascii_digit())
}
