//! The least a stdio server can do: parse a line of JSON, write a line of JSON, one thread, nothing of MCP.

use std::io::{BufRead, BufReader, BufWriter, Write, stdin, stdout};

use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, stdout().lock());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return output.flush();
        }
        let request: Value = serde_json::from_str(&line)?;
        if let Some(id) = request.get("id") {
            let text = &request["params"]["arguments"]["message"];
            let answer = json!({
                "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] }
            });
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
        }
        // What came together is answered together.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
}
