//! Skills: directories of instructions and files that a server ships, and a host loads for its model.
//!
//! The extension is the same in every revision.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{JsonObject, RequestMeta, Resource};

/// The identifier of the extension.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The media type of a directory.
pub const DIRECTORY_TYPE: &str = "inode/directory";

/// The word in place of the files of a skill whose bytes change by themselves.
const DYNAMIC: &str = "dynamic";

json_object! {
    /// What a server says of its skills in its capabilities.
    pub struct SkillsSettings {
        /// It reads directories of skills.
        directory_read?: bool,
    }

    /// A skill: its file `SKILL.md`, what that says at its top, and all of its files.
    pub struct Skill {
        /// The URI of `SKILL.md`.
        uri: String,
        /// The fields at the top of `SKILL.md`, all of them.
        frontmatter: JsonObject,
        /// The files.
        resources: SkillResources,
    } without Default

    /// A file of a skill.
    pub struct SkillResource {
        /// Its URI.
        uri: String,
        /// The SHA-256 of its bytes: `sha256:` and 64 lower-case hexadecimal digits.
        digest: String,
        /// How many bytes it has.
        size: u64,
        /// A file with its digest and its size.
        fn new,
    }

    /// A page of the skills.
    pub struct ListSkillsResult {
        /// The skills.
        skills: Vec<Skill>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..cacheable_result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// Parameters of `skills/get`.
    pub struct GetSkillParams {
        /// The URI of the skill's `SKILL.md`.
        uri: String,
        _meta: RequestMeta,
        /// Names a skill.
        fn new,
    }

    /// The result of `skills/get`.
    pub struct GetSkillResult {
        /// The skill.
        skill: Skill,
        ..cacheable_result
    } without Default

    /// Parameters of `resources/directory/read`.
    pub struct ReadDirectoryParams {
        /// The URI of the directory.
        uri: String,
        /// Where the page starts; absent for the first.
        cursor?: String,
        _meta: RequestMeta,
        /// Names a directory.
        fn new,
    }

    /// A page of what is directly in a directory.
    pub struct ReadDirectoryResult {
        /// Files, and directories by their media type.
        resources: Vec<Resource>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillResources {
    /// Every file.
    Files(Vec<SkillResource>),
    /// The bytes of the files change by themselves.
    Dynamic,
}

impl GetSkillResult {
    /// A result with this skill.
    pub fn new(skill: Skill) -> Self {
        Self {
            skill,
            ttl_ms: None,
            cache_scope: None,
            result_type: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

impl Skill {
    /// A skill with its fields and its files.
    pub fn new(uri: impl Into<String>, frontmatter: JsonObject, resources: SkillResources) -> Self {
        Self { uri: uri.into(), frontmatter, resources, extra: JsonObject::new() }
    }
}

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Files(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "resources are a list of files, or \"dynamic\"")]
        enum Wire {
            Files(Vec<SkillResource>),
            Word(String),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Files(files) => Ok(Self::Files(files)),
            Wire::Word(word) if word == DYNAMIC => Ok(Self::Dynamic),
            Wire::Word(_) => Err(D::Error::custom("resources are a list of files, or \"dynamic\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_round_trip() {
        let files = json!([{ "uri": "skill://a/SKILL.md", "digest": "sha256:00", "size": 3 }]);
        for resources in [files, json!("dynamic")] {
            let json = json!({
                "uri": "skill://a/SKILL.md", "frontmatter": { "name": "a", "x": [1] }, "resources": resources, "more": 1
            });
            let skill: Skill = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&skill).unwrap(), json);
        }
        for resources in [json!("static"), json!({}), json!(null), json!([{ "uri": "a" }])] {
            let json = json!({ "uri": "skill://a/SKILL.md", "frontmatter": {}, "resources": resources });
            assert!(serde_json::from_value::<Skill>(json).is_err(), "{resources}");
        }
        assert!(serde_json::from_value::<Skill>(json!({ "uri": "a", "frontmatter": {} })).is_err());
    }
}
