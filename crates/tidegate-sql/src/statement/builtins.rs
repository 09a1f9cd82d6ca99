//! Lists of PostgreSQL's keywords, functions and types.
//!
//! Every list is sorted and in lower case.

/// The longest word that [`Lower`] stores, in bytes. All words in the lists are shorter.
const LONGEST: usize = 48;

/// A word in lower case. It is empty if the word is longer than [`LONGEST`] or not ASCII, because
/// such a word is in no list.
#[derive(Clone, Copy)]
pub(super) struct Lower {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Lower {
    pub(super) fn of(word: &str) -> Self {
        let mut bytes = [0; LONGEST];
        let mut length = 0;
        if word.len() <= LONGEST && word.is_ascii() {
            length = word.len();
            bytes[..length].copy_from_slice(word.as_bytes());
            bytes[..length].make_ascii_lowercase();
        }
        Self { bytes, length }
    }

    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    pub(super) fn any(&self, words: &[&str]) -> bool {
        words.contains(&self.as_str())
    }
}

fn contains(list: &[&str], word: &str) -> bool {
    list.binary_search(&Lower::of(word).as_str()).is_ok()
}

/// Whether every function of this name in `pg_catalog` leaves the session unchanged.
pub(super) fn is_stateless_function(name: &str) -> bool {
    contains(STATELESS_FUNCTIONS, name)
}

/// Whether a cast to the type of this name calls only built-in functions.
pub(super) fn is_built_in_type(name: &str) -> bool {
    contains(BUILT_IN_TYPES, name)
}

/// Whether a call of a function with this name looks like syntax, or like a call of a built-in
/// function without side effects.
pub(super) fn looks_built_in(name: &str) -> bool {
    is_stateless_function(name) || is_built_in_type(name) || precedes_parenthesis(name)
}

/// Whether a built-in function of this name changes the session and can be called like a column, as
/// in `t.pg_advisory_lock` (PostgreSQL, "Using Composite Types in Queries"). Also true for every
/// name longer than [`LONGEST`], because such names are not compared.
pub(super) fn is_stateful_attribute(name: &str) -> bool {
    let lower = Lower::of(name);
    let mut prefixes = STATEFUL_PREFIXES.iter();
    name.len() > LONGEST
        || prefixes.any(|prefix| lower.as_str().starts_with(prefix))
        || contains(STATEFUL_ATTRIBUTES, name)
}

/// Whether a type hint, such as `int4[]`, `_text`, `pg_catalog.date` or `double precision`, names a
/// built-in type.
pub(super) fn is_built_in_type_name(name: &str) -> bool {
    let name = name
        .trim()
        .trim_start_matches("pg_catalog.")
        .trim_start_matches('_');
    let first = name
        .split(|c: char| c.is_ascii_whitespace() || c == '[' || c == '(')
        .next();
    !name.contains('.') && first.is_some_and(is_built_in_type)
}

/// Whether a parenthesis after this keyword does not begin a call.
pub(super) fn precedes_parenthesis(keyword: &str) -> bool {
    contains(BEFORE_PARENTHESIS, keyword)
}

/// Whether a string after this keyword is a plain string or a literal of a built-in type, and not
/// a literal of a user-defined type.
pub(super) fn precedes_string(keyword: &str) -> bool {
    contains(BEFORE_STRING, keyword)
}

/// Whether an operand must follow this keyword. Such a keyword is no operand itself.
pub(super) fn needs_operand(word: &str) -> bool {
    contains(BEFORE_OPERAND, word)
}

#[rustfmt::skip]
/// The functions of `pg_catalog` without side effects, and expressions that look like calls.
const STATELESS_FUNCTIONS: &[&str] = &[
    "abbrev", "abs", "acos", "acosd", "acosh", "age", "any_value", "area", "array_agg",
    "array_append", "array_cat", "array_dims", "array_fill", "array_length", "array_lower",
    "array_ndims", "array_position", "array_positions", "array_prepend", "array_remove",
    "array_replace", "array_reverse", "array_sample", "array_shuffle", "array_sort",
    "array_to_json", "array_to_string", "array_to_tsvector", "array_upper", "ascii", "asin",
    "asind", "asinh", "atan", "atan2", "atan2d", "atand", "atanh", "avg", "bernoulli", "bit",
    "bit_and", "bit_count", "bit_length", "bit_or", "bit_xor", "bool", "bool_and", "bool_or",
    "bound_box", "box", "bpchar", "broadcast", "btrim", "bytea", "cardinality", "casefold",
    "cbrt", "ceil", "ceiling", "center", "char", "char_length", "character_length", "chr",
    "circle", "clock_timestamp", "coalesce", "col_description", "concat", "concat_ws", "convert",
    "convert_from", "convert_to", "corr", "cos", "cosd", "cosh", "cot", "cotd", "count",
    "covar_pop", "covar_samp", "crc32", "crc32c", "cume_dist", "current_database",
    "current_schema", "current_schemas", "current_setting", "current_time", "current_timestamp",
    "date", "date_add", "date_bin", "date_part", "date_subtract", "date_trunc", "datemultirange",
    "daterange", "decode", "degrees", "dense_rank", "diagonal", "diameter", "div", "encode",
    "erf", "erfc", "every", "exp", "extract", "factorial", "family", "first_value", "float4",
    "float8", "floor", "format", "format_type", "gcd", "gen_random_uuid", "generate_series",
    "generate_subscripts", "get_bit", "get_byte", "greatest", "grouping",
    "has_any_column_privilege", "has_column_privilege", "has_database_privilege",
    "has_foreign_data_wrapper_privilege", "has_function_privilege", "has_language_privilege",
    "has_schema_privilege", "has_sequence_privilege", "has_server_privilege",
    "has_table_privilege", "has_tablespace_privilege", "has_type_privilege", "hashtext", "height",
    "host", "hostmask", "inet_client_addr", "inet_client_port", "inet_merge", "inet_same_family",
    "inet_server_addr", "inet_server_port", "initcap", "int2", "int4", "int4multirange",
    "int4range", "int8", "int8multirange", "int8range", "interval", "isclosed", "isempty",
    "isfinite", "isopen", "json", "json_agg", "json_array_elements", "json_array_elements_text",
    "json_array_length", "json_build_array", "json_build_object", "json_each", "json_each_text",
    "json_extract_path", "json_extract_path_text", "json_object", "json_object_agg",
    "json_object_keys", "json_strip_nulls", "json_to_tsvector", "json_typeof", "jsonb",
    "jsonb_agg", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_array_length",
    "jsonb_build_array", "jsonb_build_object", "jsonb_concat", "jsonb_contains", "jsonb_delete",
    "jsonb_delete_path", "jsonb_each", "jsonb_each_text", "jsonb_exists", "jsonb_extract_path",
    "jsonb_extract_path_text", "jsonb_insert", "jsonb_object", "jsonb_object_agg",
    "jsonb_object_keys", "jsonb_path_exists", "jsonb_path_exists_tz", "jsonb_path_match",
    "jsonb_path_match_tz", "jsonb_path_query", "jsonb_path_query_array",
    "jsonb_path_query_array_tz", "jsonb_path_query_first", "jsonb_path_query_first_tz",
    "jsonb_path_query_tz", "jsonb_pretty", "jsonb_set", "jsonb_set_lax", "jsonb_strip_nulls",
    "jsonb_to_tsvector", "jsonb_typeof", "justify_days", "justify_hours", "justify_interval",
    "lag", "last_value", "lcm", "lead", "least", "left", "length", "line", "ln", "localtime",
    "localtimestamp", "log", "log10", "lower", "lower_inc", "lower_inf", "lpad", "lseg", "ltrim",
    "macaddr8_set7bit", "make_date", "make_interval", "make_time", "make_timestamp",
    "make_timestamptz", "masklen", "max", "md5", "min", "min_scale", "mod", "mode", "money",
    "multirange", "name", "netmask", "network", "normalize", "now", "npoints", "nth_value",
    "ntile", "nullif", "num_nonnulls", "num_nulls", "numeric", "nummultirange", "numnode",
    "numrange", "obj_description", "octet_length", "oid", "overlay", "parse_ident", "path",
    "pclose", "percent_rank", "percentile_cont", "percentile_disc", "pg_backend_pid",
    "pg_column_size", "pg_current_xact_id", "pg_database_size", "pg_function_is_visible",
    "pg_get_constraintdef", "pg_get_expr", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_get_function_result", "pg_get_functiondef",
    "pg_get_indexdef", "pg_get_keywords", "pg_get_partkeydef", "pg_get_ruledef",
    "pg_get_serial_sequence", "pg_get_statisticsobjdef", "pg_get_triggerdef", "pg_get_userbyid",
    "pg_get_viewdef", "pg_has_role", "pg_indexes_size", "pg_is_in_recovery",
    "pg_postmaster_start_time", "pg_relation_size", "pg_size_bytes", "pg_size_pretty", "pg_sleep",
    "pg_table_is_visible", "pg_table_size", "pg_total_relation_size", "pg_type_is_visible",
    "pg_typeof", "phraseto_tsquery", "pi", "plainto_tsquery", "point", "polygon", "popen",
    "position", "pow", "power", "querytree", "quote_ident", "quote_literal", "quote_nullable",
    "radians", "radius", "random", "range_agg", "range_intersect_agg", "range_merge", "rank",
    "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_matches",
    "regexp_replace", "regexp_split_to_array", "regexp_split_to_table", "regexp_substr",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy", "repeat", "replace", "reverse", "right", "round", "row_number",
    "row_security_active", "row_to_json", "rpad", "rtrim", "scale", "set_bit", "set_byte",
    "set_masklen", "setweight", "sha224", "sha256", "sha384", "sha512", "shobj_description",
    "sign", "sin", "sind", "sinh", "slope", "split_part", "sqrt", "starts_with",
    "statement_timestamp", "stddev", "stddev_pop", "stddev_samp", "string_agg", "string_to_array",
    "string_to_table", "strip", "strpos", "substr", "substring", "sum", "system", "tan", "tand",
    "tanh", "text", "time", "timeofday", "timestamp", "timestamptz", "timetz", "timezone",
    "to_ascii", "to_bin", "to_char", "to_date", "to_hex", "to_json", "to_jsonb", "to_number",
    "to_oct", "to_regclass", "to_regcollation", "to_regnamespace", "to_regoper", "to_regoperator",
    "to_regproc", "to_regprocedure", "to_regrole", "to_regtype", "to_timestamp", "to_tsquery",
    "to_tsvector", "transaction_timestamp", "translate", "trim", "trim_array", "trim_scale",
    "trunc", "ts_delete", "ts_filter", "ts_headline", "ts_rank", "ts_rank_cd", "tsmultirange",
    "tsquery_phrase", "tsrange", "tstzmultirange", "tstzrange", "tsvector_to_array",
    "txid_current", "unistr", "unnest", "upper", "upper_inc", "upper_inf",
    "uuid_extract_timestamp", "uuid_extract_version", "uuidv4", "uuidv7", "var_pop", "var_samp",
    "varbit", "varchar", "variance", "version", "websearch_to_tsquery", "width", "width_bucket",
    "xml_is_well_formed", "xml_is_well_formed_content", "xml_is_well_formed_document", "xmlagg",
    "xmlcomment", "xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlparse", "xmlpi",
    "xmlroot", "xpath", "xpath_exists",
];

/// Prefixes of function names. Many built-in functions with these prefixes have side effects. In
/// `t.name`, every name with such a prefix counts as a function with side effects, even if the
/// function has none (`pg_typeof`).
const STATEFUL_PREFIXES: &[&str] = &["binary_upgrade_", "brin_", "gin_", "lo_", "pg_"];

/// The functions of `pg_catalog` that have side effects, have none of the prefixes in
/// [`STATEFUL_PREFIXES`], and can be called like a column: `t.nextval`.
const STATEFUL_ATTRIBUTES: &[&str] = &["currval", "lastval", "nextval", "setseed", "ts_stat"];

#[rustfmt::skip]
/// The types of `pg_catalog`, and the first words of their SQL names.
const BUILT_IN_TYPES: &[&str] = &[
    "bigint", "bit", "bool", "boolean", "box", "bpchar", "bytea", "char", "character", "cid",
    "cidr", "circle", "date", "datemultirange", "daterange", "dec", "decimal", "double", "float",
    "float4", "float8", "inet", "int", "int2", "int2vector", "int4", "int4multirange",
    "int4range", "int8", "int8multirange", "int8range", "integer", "interval", "json", "jsonb",
    "jsonpath", "line", "lseg", "macaddr", "macaddr8", "money", "name", "national", "nchar",
    "numeric", "nummultirange", "numrange", "oid", "oidvector", "path", "pg_lsn", "pg_snapshot",
    "point", "polygon", "real", "regclass", "regcollation", "regconfig", "regdictionary",
    "regnamespace", "regoper", "regoperator", "regproc", "regprocedure", "regrole", "regtype",
    "smallint", "text", "tid", "time", "timestamp", "timestamptz", "timetz", "tsmultirange",
    "tsquery", "tsrange", "tstzmultirange", "tstzrange", "tsvector", "txid_snapshot", "uuid",
    "varbit", "varchar", "xid", "xid8", "xml",
];

#[rustfmt::skip]
/// The keywords after which a parenthesis does not begin a function call.
const BEFORE_PARENTHESIS: &[&str] = &[
    "all", "and", "any", "array", "as", "asymmetric", "between", "both", "case", "cast",
    "coalesce", "distinct", "else", "except", "exists", "extract", "fetch", "for", "from",
    "grouping", "having", "in", "intersect", "into", "lateral", "leading", "like", "limit", "not",
    "nullif", "offset", "on", "only", "or", "order", "returning", "row", "select", "some",
    "symmetric", "then", "trailing", "union", "using", "values", "variadic", "when", "where",
    "window", "with",
];

#[rustfmt::skip]
/// A string after one of these keywords is a plain string or a literal of a built-in type, not a
/// literal of a user-defined type.
const BEFORE_STRING: &[&str] = &[
    "all", "and", "any", "array", "as", "asymmetric", "between", "both", "case", "distinct",
    "else", "end", "escape", "except", "for", "from", "having", "ilike", "in", "intersect",
    "interval", "leading", "like", "limit", "not", "offset", "on", "or", "placing", "precision",
    "returning", "select", "some", "symmetric", "then", "to", "trailing", "union", "using",
    "values", "varying", "when", "where", "zone",
];

#[rustfmt::skip]
/// The keywords that require an operand after them.
const BEFORE_OPERAND: &[&str] = &[
    "all", "and", "any", "array", "as", "asymmetric", "at", "between", "both", "by", "case",
    "cast", "collate", "distinct", "else", "escape", "except", "exists", "for", "from", "group",
    "having", "ilike", "in", "intersect", "into", "is", "join", "lateral", "leading", "like",
    "limit", "not", "offset", "on", "or", "order", "over", "overlaps", "placing", "returning",
    "row", "select", "set", "similar", "some", "symmetric", "then", "to", "trailing", "union",
    "using", "values", "variadic", "when", "where", "with", "zone",
];
