//! Rules about the extension for skills.

rules! {
    SKILLS "Skills"
    SKL_01 "SKL-01" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#capability-negotiation"
        "A server that declares skills serves skills/list and skills/get.";
    SKL_02 "SKL-02" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#capability-negotiation"
        "A server that declares skills declares resources too.";
    SKL_03 "SKL-03" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#reading-directories"
        "A server with directoryRead reads every directory of its skills.";
    SKL_04 "SKL-04" Must Client ABCDE "ext-skills/specification/stable/skills.mdx#capability-negotiation"
        "Methods of skills are called once the server declares them, directories with directoryRead.";
    SKL_05 "SKL-05" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#skill-format"
        "A skill's SKILL.md begins with frontmatter that has a name and a description.";
    SKL_06 "SKL-06" Should Server ABCDE "ext-skills/specification/stable/skills.mdx#resource-mapping"
        "URIs of skills have the scheme skill.";
    SKL_07 "SKL-07" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resource-mapping"
        "A skill's directory is called like the skill: 1 to 64 lower-case letters, digits and single hyphens.";
    SKL_08 "SKL-08" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#skill-uris"
        "The URI of a skill ends in /SKILL.md.";
    SKL_09 "SKL-09" Should Server ABCDE "ext-skills/specification/stable/skills.mdx#resource-mapping"
        "What stands before the skill's name are segments of a URI, the first a registered name.";
    SKL_10 "SKL-10" Must Client ABCDE "ext-skills/specification/stable/skills.mdx#resource-mapping"
        "The first segment of a skill's URI is looked up in no network.";
    SKL_11 "SKL-11" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resource-mapping"
        "A skill is what skills/list or skills/get says, whatever the scheme of a URI.";
    SKL_12 "SKL-12" Should Server ABCDE "ext-skills/specification/stable/skills.mdx#resource-metadata"
        "The resource of a SKILL.md is text/markdown, with the name and the description of the skill.";
    SKL_13 "SKL-13" Should Server ABCDE "ext-skills/specification/stable/skills.mdx#resource-metadata"
        "Keys of _meta about skills have the prefix of the extension.";
    SKL_14 "SKL-14" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#frontmatter"
        "frontmatter has every field of the file as it is.";
    SKL_15 "SKL-15" Should Host ABCDE "ext-skills/specification/stable/skills.mdx#frontmatter"
        "Unknown metadata under MCP's own prefix is ignored.";
    SKL_16 "SKL-16" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A skill has resources: a list, or the word dynamic.";
    SKL_17 "SKL-17" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A skill without proper resources is not loaded.";
    SKL_18 "SKL-18" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "resources has each file of the skill once, SKILL.md and nested skills included.";
    SKL_19 "SKL-19" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "Files of a skill lie in its directory.";
    SKL_20 "SKL-20" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A file has its size and its digest: sha256 and 64 lower-case hexadecimal digits.";
    SKL_21 "SKL-21" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "Digest and size are those of what resources/read returns.";
    SKL_22 "SKL-22" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A skill whose bytes change by themselves is dynamic.";
    SKL_23 "SKL-23" Should Server ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A skill has at most 512 files and 16 MiB.";
    SKL_24 "SKL-24" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "Hosts take skills up to these limits, and tell the user of those that they decline.";
    SKL_25 "SKL-25" May Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "Hosts may decline dynamic skills, or stop at the limit.";
    SKL_26 "SKL-26" Must Server E "ext-skills/specification/stable/skills.mdx#listing-skills"
        "Results about skills are complete; a list and an entry say how long and for whom they may be cached.";
    SKL_27 "SKL-27" May Server ABCDE "ext-skills/specification/stable/skills.mdx#listing-skills"
        "A list may lack skills, even all.";
    SKL_28 "SKL-28" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#listing-skills"
        "A skill can be loaded by its URI alone, listed or not.";
    SKL_29 "SKL-29" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#listing-skills"
        "The entry of a skill is whole on one page.";
    SKL_30 "SKL-30" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#getting-a-skill"
        "skills/get knows every skill that is served, and refuses other URIs with -32602.";
    SKL_31 "SKL-31" Must Client ABCDE "ext-skills/specification/stable/skills.mdx#getting-a-skill"
        "skills/get asks for the URI of a SKILL.md.";
    SKL_32 "SKL-32" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#getting-a-skill"
        "skills/get has the same entry as the list, and no pages.";
    SKL_33 "SKL-33" Must Server ABCDE "ext-skills/specification/stable/skills.mdx#reading-directories"
        "A directory has its direct children alone; one that does not exist is refused with -32602.";
    SKL_34 "SKL-34" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#skill-uris"
        "A skill is known by its server and its URI together.";
    SKL_35 "SKL-35" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#skill-uris"
        "Paths of stored skills tell the server and the URI.";
    SKL_36 "SKL-36" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#names"
        "Skills of the same name are told apart; a listing should have none.";
    SKL_37 "SKL-37" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#names"
        "A skill never takes the place of another one that has its name.";
    SKL_38 "SKL-38" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Files of skills are fetched when they are needed and not before.";
    SKL_39 "SKL-39" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A fetched file is compared with its digest and size.";
    SKL_40 "SKL-40" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A file that differs from its digest or size is not used.";
    SKL_41 "SKL-41" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#frontmatter"
        "A skill whose file has other frontmatter than its entry is not loaded.";
    SKL_42 "SKL-42" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "A skill that acts reads the files of its entry and no others.";
    SKL_43 "SKL-43" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#resources"
        "The entry holds as long as SKILL.md is in the context.";
    SKL_44 "SKL-44" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Reading a SKILL.md like any resource loads no skill.";
    SKL_45 "SKL-45" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A digest that matches proves no honesty.";
    SKL_46 "SKL-46" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#reading-directories"
        "What a directory shows beyond the entry is no part of the skill.";
    SKL_47 "SKL-47" Should Host ABCDE "ext-skills/specification/stable/skills.mdx#reading-directories"
        "Files beyond the entry are shown as a change that wants a new approval.";
    SKL_48 "SKL-48" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A stored approval holds for exactly these files and digests.";
    SKL_49 "SKL-49" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A dynamic skill cannot be approved for the future.";
    SKL_50 "SKL-50" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#nested-skills"
        "A nested skill acts by a consent of its own.";
    SKL_51 "SKL-51" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Skills are untrusted input, riskier than remote tools.";
    SKL_52 "SKL-52" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "The model sees where a skill comes from.";
    SKL_53 "SKL-53" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A skill executes nothing on the host without approval for this skill.";
    SKL_54 "SKL-54" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Fields that widen permissions count only once they are granted to this skill.";
    SKL_55 "SKL-55" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A skill reads from its own server; reads elsewhere are approved one by one.";
    SKL_56 "SKL-56" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#names"
        "Servers are called as the host calls them.";
    SKL_57 "SKL-57" Should Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "What was read is cached until its server is removed.";
    SKL_58 "SKL-58" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Cached files are writable by the host alone, or hashed again on each use.";
    SKL_59 "SKL-59" Must Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Cached skills are never found as local ones.";
    SKL_60 "SKL-60" Should Host ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "Users see a skill and its origin before it is loaded.";
    SKL_61 "SKL-61" May Proxy ABCDE "ext-skills/specification/stable/skills.mdx#security-considerations"
        "A proxy may add where a skill comes from, under a prefix of its own.";
}
