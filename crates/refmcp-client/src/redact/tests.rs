//! Tests of redaction.

use super::*;

fn line(words: &[&str]) -> String {
    command_line(words)
}

#[test]
fn values_are_hidden_by_where_they_stand() {
    for (words, shown) in [
        (&["npx", "-y", "server", "--token", "hush"][..], "npx -y server --token ***"),
        (&["server", "--api-key=hush", "-v"], "server --api-key=*** -v"),
        (&["server", "--apiKey", "hush", "--port", "80"], "server --apiKey *** --port 80"),
        (&["server", "--access_token", "--verbose", "a"], "server --access_token --verbose a"),
        (&["server", "--token", "-hush-hush"], "server --token ***"),
        (&["API_KEY=hush", "lower=hush", "npx", "a=b"], "API_KEY=*** lower=*** npx a=b"),
        (&["env", "-i", "name=hush", "npx", "x"], "env -i name=*** npx x"),
        (&["/usr/bin/env", "A=hush", "npx"], "/usr/bin/env A=*** npx"),
        (
            &["docker", "run", "-e", "name=hush", "-eKEY=hush", "image"],
            "docker run -e name=*** -eKEY=*** image",
        ),
        (&["docker", "run", "--env=KEY=hush", "-e", "KEY", "image"], "docker run --env=KEY=*** -e KEY image"),
        (
            &["mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer hush"],
            "mcp-remote https://h/mcp --header 'Authorization: ***'",
        ),
        (&["x", "--header=X-Key:hush"], "x '--header=X-Key: ***'"),
        (&["curl", "-u", "me:hush"], "curl -u me:***"),
        (&["x", "postgresql://me:hush@db/x?sslmode=off"], "x 'postgresql://***@db/x?sslmode=***'"),
        (&["x", "--url=https://h/?k=hush"], "x '--url=https://h/?k=***'"),
        (&["x", "--config", r#"{"apiKey":"hush","port":1}"#], r#"x --config '{"apiKey":"***","port":1}'"#),
        (&["x", "ghp_abcdefghijklmnop", "q7Xw0Zk4n1Vt8Rb2Yc5L"], "x *** ***"),
        (&["x", "--auth", "Bearer", "hush"], "x --auth Bearer ***"),
        (&["x", "h:80/?k=hush"], "x 'h:80/?k=***'"),
    ] {
        assert_eq!(line(words), shown);
    }
}

#[test]
fn scripts_are_looked_into() {
    for (script, shown) in [
        ("exec server --token hush; ls", "exec server --token ***; ls"),
        ("TOKEN='hu sh' PATH=$PATH:/x \"$0\" stdio", "TOKEN=*** PATH=*** \"$0\" stdio"),
        ("curl -H 'X-Api-Key: hush' https://h?k=hush|cat", "curl -H 'X-Api-Key: ***' https://h?k=***|cat"),
        ("echo \"Authorization: Bearer hush\"", "echo \"Authorization: Bearer ***\""),
        ("sh -c 'sh -c \"x --key hush\"'", "sh -c 'sh -c \"x --key ***\"'"),
        ("exec 3>&1; sleep 1000 & exec \"$0\" stdio", "exec 3>&1; sleep 1000 & exec \"$0\" stdio"),
        ("x --key 'hush", "x --key ***"),
    ] {
        assert_eq!(words(&["sh", "-c", script]), ["sh", "-c", shown]);
    }
    let deep = (0..1000).fold("x --key hush".to_owned(), |script, at| {
        let quote = if at % 2 == 0 { '\'' } else { '"' };
        format!("sh -c {quote}{script}{quote}")
    });
    assert!(!line(&["sh", "-c", &deep]).contains("hush"));
}

#[test]
fn what_is_no_secret_is_left_alone() {
    for words in [
        &["npx", "-y", "@modelcontextprotocol/server-everything", "stdio"][..],
        &["docker", "run", "-i", "--rm", "mcp/time:1.0", "--local-timezone=Europe/Oslo"],
        &["refmcp", "stdio", "--resources", "/tmp/.tmpAbC123/folder", "--page-size=3"],
        &["node", "/home/me/src/MyServer2/index.js", "--max-tokens", "100", "--token-file", "/run/x"],
        &["x", "http://127.0.0.1:3000/mcp", "user@example.org", "a=b", "=", "", "--"],
        &["uvx", "mcp-server-fetch", "--user-agent=Mozilla/5.0", "--keyboard", "us"],
    ] {
        assert_eq!(super::words(words), words);
    }
}

#[test]
fn urls_keep_where_and_lose_what_opens() {
    for (text, shown) in [
        ("https://me:hush@example.org:8443/mcp", "https://***@example.org:8443/mcp"),
        ("https://hush@example.org/mcp", "https://***@example.org/mcp"),
        ("wss://h/a?token=hush&x=1&flag&e=", "wss://h/a?token=***&x=***&***&e="),
        ("http://h#hush", "http://h#***"),
        ("http://h?hush", "http://h?***"),
        ("https://h/s/q7Xw0Zk4n1Vt8Rb2Yc5L/mcp", "https://h/s/***/mcp"),
        ("https://h/0b2f7a6c-1f2e-4c3d-9a8b-7c6d5e4f3a2b/mcp", "https://h/***/mcp"),
        ("http://[::1?k=hush", "http://[::1?k=***"),
        ("http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/mcp"),
        ("https://h/@scope/pkg@1.2", "https://h/@scope/pkg@1.2"),
        ("no url", "no url"),
        ("://", "://"),
    ] {
        assert_eq!(url(text), shown);
    }
}

#[test]
fn a_person_who_agrees_sees_what_could_do_something() {
    for (words, shown) in [
        (&["x", "--token", "hush"][..], &["x", "--token", "***"][..]),
        (&["x", "--token", "$(evil)"], &["x", "--token", "$(evil)"]),
        (&["x", "--key=/tmp/evil.js"], &["x", "--key=/tmp/evil.js"]),
        (&["sh", "-c", "KEY=`evil` KEY=hush x"], &["sh", "-c", "KEY=`evil` KEY=*** x"]),
        (&["x", "-H", "Authorization: Bearer a/b+c="], &["x", "-H", "Authorization: ***"]),
        (&["x", "-H", "Authorization: $(evil)"], &["x", "-H", "Authorization: $(evil)"]),
    ] {
        assert_eq!(words_to_confirm(words), shown);
    }
}

#[test]
fn passwords_after_p_are_told_from_ports_paths_and_packages() {
    for (words, shown) in [
        (&["mysql", "-u", "me", "-p", "hush", "db"][..], "mysql -u me -p *** db"),
        (&["mysql", "-phush", "db"], "mysql -p*** db"),
        (&["server", "-pHush1", "-p", "hush"], "server -p*** -p ***"),
        (&["sh", "-c", "exec mysql -phush -p 'hush'"], "sh -c 'exec mysql -p*** -p ***'"),
        (&["server", "-p", "3000", "-p8080:80", "-port", "80"], "server -p 3000 -p8080:80 -port 80"),
        (&["npx", "-p", "package", "cmd"], "npx -p package cmd"),
        (&["server", "-p", "./folder", "-p", "--verbose"], "server -p ./folder -p --verbose"),
    ] {
        assert_eq!(line(words), shown);
    }
    assert_eq!(words_to_confirm(&["x", "-p", "package"]), ["x", "-p", "package"]);
}

#[test]
fn options_that_set_variables_hide_their_values() {
    for (words, shown) in [
        (&["x", "--env-var", "lower=hush"][..], "x --env-var lower=***"),
        (&["x", "--env-var=lower=hush", "--env=lower=hush"], "x --env-var=lower=*** --env=lower=***"),
        (
            &["x", "--set-env", "lower=hush", "--environment", "a=hush"],
            "x --set-env lower=*** --environment a=***",
        ),
        (&["x", "--env-file", "a=b", "--var", "a=b"], "x --env-file a=b --var a=b"),
    ] {
        assert_eq!(line(words), shown);
    }
}

#[test]
fn members_of_scripts_hide_their_values() {
    for (script, shown) in [
        ("conf['password'] = 'hush'; run()", "conf['password'] = ***; run()"),
        ("['password'] = 'hush'", "['password'] = ***"),
        ("conf[\"api_key\"]=\"hush\"", "conf[\"api_key\"]=***"),
        ("process.env.TOKEN = 'hush'", "process.env.TOKEN = ***"),
        ("{ \"password\": \"hush\", \"port\": 1 }", "{ \"password\": *** \"port\": 1 }"),
        ("token => 'hush'", "token => ***"),
        ("print('token') or run()", "print('token') or run()"),
    ] {
        assert_eq!(words(&["python", "-c", script]), ["python", "-c", shown]);
    }
}

#[test]
fn any_text_is_taken() {
    for text in ["'", "\"", "\\", "'\"", "=", "-", "--=", "ä=ö", "😀 😀", "{", "[", "a://", "@://@", "\0 \n"]
    {
        let shown = words(&[text, text, "--token", text]);
        assert_eq!(shown.len(), 4, "{text}");
    }
}

#[test]
fn connection_strings_logins_and_colons_are_masked() {
    for (words, shown) in [
        (
            &["run", "--storage", "AccountName=x;AccountKey=hush=="][..],
            "run --storage 'AccountName=x;AccountKey=***'",
        ),
        (&["run", "--db", "Server=db;User=me;Password=hush;"], "run --db 'Server=db;User=me;Password=***;'"),
        (&["run", "--api_key:hush", "/token:hush"], "run --api_key:*** /token:***"),
        (
            &["run", "/password", "hush", "--passcode", "hush", "--otp", "1", "--pin", "2"],
            "run /password *** --passcode *** --otp *** --pin ***",
        ),
        (&["run", "me:hush@host/db", "amqp:hush:pw@host"], "run ***@host/db ***@host"),
        (&["run", "http:/hush:hush@h/mcp?x=hush"], "run '***@h/mcp?x=***'"),
        (&["run", "https://h/x;token=hush/y"], "run 'https://h/x;token=***/y'"),
        (&["run", "C:/Users/me", "a:b", "12:30", "key:"], "run C:/Users/me a:b 12:30 key:"),
    ] {
        assert_eq!(line(words), shown);
    }
}

#[test]
fn a_secret_is_masked_at_its_second_place_too() {
    let shown =
        words(&["KEY=in-variable", "sh", "-c", "echo xin-variable; run", "--token", "quiet", "quiet"]);
    assert_eq!(shown, ["KEY=***", "sh", "-c", "echo x***; run", "--token", "***", "***"]);
}
