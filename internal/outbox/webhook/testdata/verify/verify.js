// Reads {secret, headers, body} lines and answers each with "ok" or the library's complaint.
const { Webhook } = require("standardwebhooks");
const lines = require("fs").readFileSync(0, "utf8").trim().split("\n");
for (const line of lines) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(body, headers);
    console.log("ok");
  } catch (e) {
    console.log(e.message);
  }
}
