//! Tools with structured results.

use refmcp_server::model::plain_number;
use refmcp_server::{Call, CallError, Json, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

const CONDITIONS: [&str; 8] =
    ["Sunny", "Partly cloudy", "Cloudy", "Light rain", "Rain", "Thunderstorm", "Snow", "Fog"];

pub(super) fn tools() -> Vec<Tool> {
    let weather = Tool::new(
        "get_weather",
        "Tells the weather of a place; the same place always has the same",
        get_weather,
    );
    let tools = [
        Tool::new("sum", "Adds two numbers", sum).title("Sum"),
        weather.title("Weather Information Provider"),
    ];
    tools.into_iter().map(|tool| tool.read_only().idempotent().inline()).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sum {
    /// The first number
    a: f64,
    /// The second number
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    /// The sum of the two numbers
    total: Number,
}

async fn sum(_: Call, Sum { a, b }: Sum) -> Result<Json<Total>, CallError> {
    let total = plain_number(a + b)
        .ok_or_else(|| CallError::new("the sum is too large to be written as a number"))?;
    Ok(Json(Total { total }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The name of a city, or a postal code
    #[schemars(length(min = 1, max = 200))]
    location: String,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    /// The temperature in degrees Celsius
    temperature: f64,
    /// What the sky looks like
    conditions: &'static str,
    /// The relative humidity in percent
    humidity: f64,
}

async fn get_weather(_: Call, Place { location }: Place) -> Result<(String, Json<Weather>), CallError> {
    let number = fnv(&location.trim().to_lowercase());
    // Three numbers out of one: tenths of a degree from -10 to 35, one of the conditions, 20 to 99 percent.
    let draw = |shift: u32, size: u32| (number >> shift) as u32 % size;
    let temperature = (f64::from(draw(8, 450)) - 100.0) / 10.0;
    let conditions = CONDITIONS.iter().cycle().nth(draw(16, 8) as usize).copied().unwrap_or_default();
    let humidity = f64::from(20 + draw(32, 80));
    let text = format!("The weather in {location}\n{temperature} °C, {conditions}\n{humidity} % humidity");
    Ok((text, Json(Weather { temperature, conditions, humidity })))
}

/// A small hash that is the same everywhere (FNV-1a).
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
