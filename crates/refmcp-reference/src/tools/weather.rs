//! A result with an output schema and text that says the same for people.

use std::sync::Arc;

use refmcp_server::model::{CallToolResult, JsonObject};
use refmcp_server::{Call, CallError, Json, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const CONDITIONS: [&str; 8] =
    ["Sunny", "Partly cloudy", "Cloudy", "Light rain", "Rain", "Thunderstorm", "Snow", "Fog"];

pub(super) fn tools() -> Vec<Tool> {
    let weather = Tool::new(
        "get_weather",
        "Tells the weather of a place; the same place always has the same",
        get_weather,
    );
    vec![weather.title("Weather Information Provider").read_only().idempotent().inline()]
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

/// The weather, and where.
struct Report {
    location: String,
    weather: Weather,
}

impl ToolOutput for Report {
    fn schema() -> Option<Arc<JsonObject>> {
        Json::<Weather>::schema()
    }

    fn into_result(self) -> Result<CallToolResult, CallError> {
        let Weather { temperature, conditions, humidity } = &self.weather;
        let text = format!(
            "The weather in {}\n{temperature} °C, {conditions}\n{humidity} % humidity",
            self.location
        );
        Ok(CallToolResult::text(text).structured_content(serde_json::to_value(self.weather)?))
    }
}

async fn get_weather(_: Call, Place { location }: Place) -> Result<Report, CallError> {
    let number = fnv(&location.trim().to_lowercase());
    // Three numbers out of one: tenths of a degree from -10 to 35, one of the conditions, 20 to 99 percent.
    let draw = |shift: u32, size: u32| (number >> shift) as u32 % size;
    let temperature = (f64::from(draw(8, 450)) - 100.0) / 10.0;
    let conditions = CONDITIONS.iter().cycle().nth(draw(16, 8) as usize).copied().unwrap_or_default();
    let humidity = f64::from(20 + draw(32, 80));
    Ok(Report { location, weather: Weather { temperature, conditions, humidity } })
}

/// A small hash that is the same everywhere (FNV-1a).
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
