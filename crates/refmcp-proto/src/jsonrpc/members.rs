//! The members of a JSON object in their order, which a map would change.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Reads an object as a list of its members, as they come.
///
/// ```
/// use refmcp_proto::jsonrpc::members_in_order;
///
/// let mut json = serde_json::Deserializer::from_str(r#"{"z":1,"a":2}"#);
/// let members: Vec<(String, u8)> = members_in_order(&mut json)?;
/// assert_eq!(members, [("z".to_owned(), 1), ("a".to_owned(), 2)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn members_in_order<'de, K, V, D>(deserializer: D) -> Result<Vec<(K, V)>, D::Error>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Members<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Members<K, V> {
        type Value = Vec<(K, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    deserializer.deserialize_map(Members(PhantomData))
}
