//! Starts a stdio server, calls its `echo` tool, and prints one line of JSON: calls per second, the server's CPU
//! time per call, latencies. Usage: `stdio_load IN_FLIGHT SECONDS [--modern] -- COMMAND [ARGS…]`

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use refmcp_bench::process::cpu_time;
use serde_json::{Value, json};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|arg| arg == "--").context("no -- before the command")?;
    let (options, command) = (&args[..split], &args[split + 1..]);
    let in_flight: usize = options.first().context("no number in flight")?.parse()?;
    let seconds: f64 = options.get(1).context("no seconds")?.parse()?;
    let modern = options.iter().any(|option| option == "--modern");
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", command[0]))?;
    let report = measure(&mut child, in_flight, Duration::from_secs_f64(seconds), modern);
    let _ = child.kill();
    let _ = child.wait();
    println!("{}", report?);
    Ok(())
}

fn measure(child: &mut Child, in_flight: usize, time: Duration, modern: bool) -> Result<Value> {
    let mut input = child.stdin.take().context("no stdin")?;
    let mut output = BufReader::with_capacity(256 << 10, child.stdout.take().context("no stdout")?);
    let mut line = String::new();
    if !modern {
        let hello = json!({"jsonrpc":"2.0","id":"hello","method":"initialize","params":{
            "protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}});
        writeln!(input, "{hello}")?;
        output.read_line(&mut line)?;
        writeln!(input, "{}", json!({"jsonrpc":"2.0","method":"notifications/initialized"}))?;
    }
    let meta = if modern {
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
    } else {
        ""
    };
    let mut run = Run { next: 0, sent: HashMap::new(), latencies: Vec::new(), meta };
    // Warm up, then count.
    run.calls(&mut input, &mut output, in_flight, Instant::now() + Duration::from_millis(300))?;
    run.latencies.clear();
    let cpu_before = cpu_time(child.id())?;
    let start = Instant::now();
    run.calls(&mut input, &mut output, in_flight, start + time)?;
    let took = start.elapsed().as_secs_f64();
    let cpu = cpu_time(child.id())? - cpu_before;
    run.latencies.sort_unstable();
    let count = run.latencies.len();
    let at = |share: f64| run.latencies[((count - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok(json!({
        "in_flight": in_flight,
        "calls": count,
        "calls_per_second": (count as f64 / took).round(),
        "cpu_us_per_call": (cpu.as_secs_f64() * 1e6 / count as f64 * 100.0).round() / 100.0,
        "p50_us": at(0.5).round(),
        "p99_us": at(0.99).round(),
    }))
}

struct Run {
    next: u64,
    sent: HashMap<u64, Instant>,
    latencies: Vec<Duration>,
    meta: &'static str,
}

impl Run {
    /// Keeps `in_flight` calls going until the time is over, then waits for the last ones.
    fn calls(
        &mut self,
        input: &mut impl Write,
        output: &mut BufReader<impl std::io::Read>,
        in_flight: usize,
        until: Instant,
    ) -> Result<()> {
        let mut line = String::new();
        let mut batch = Vec::new();
        loop {
            if Instant::now() < until {
                while self.sent.len() < in_flight {
                    self.next += 1;
                    write!(
                        batch,
                        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"hello world"}}{}}}}}"#,
                        self.next, self.meta
                    )?;
                    batch.push(b'\n');
                    self.sent.insert(self.next, Instant::now());
                }
            }
            input.write_all(&batch)?;
            batch.clear();
            if self.sent.is_empty() {
                return Ok(());
            }
            // Take at least one answer, and whatever else has already come.
            loop {
                line.clear();
                if output.read_line(&mut line)? == 0 {
                    bail!("the server closed its output");
                }
                self.answered(&line)?;
                if !output.buffer().contains(&b'\n') {
                    break;
                }
            }
        }
    }

    fn answered(&mut self, line: &str) -> Result<()> {
        let answer: Answer = serde_json::from_str(line)?;
        ensure!(line.contains("hello world"), "not an echo: {line}");
        let sent = self.sent.remove(&answer.id).with_context(|| format!("answered twice: {line}"))?;
        self.latencies.push(sent.elapsed());
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct Answer {
    id: u64,
}
