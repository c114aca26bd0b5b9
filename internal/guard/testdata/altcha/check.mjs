// Reads {key, challenge, payload, late} and says what ALTCHA's libraries make of them.
import { readFileSync } from "node:fs";
import { sha, solveChallenge as solveAsWidget } from "altcha/lib";
import { createChallenge, extractParams, solveChallenge, verifySolution } from "altcha-lib/v1";

const { key, challenge, payload, late } = JSON.parse(readFileSync(0, "utf8"));
const encode = (c, number) =>
  btoa(JSON.stringify({ algorithm: c.algorithm, challenge: c.challenge, number, salt: c.salt, signature: c.signature, took: 1 }));
const solve = async (c) => encode(c, (await solveChallenge(c.challenge, c.salt, c.algorithm, c.maxnumber).promise).number);
// The widget takes a challenge of the first version as one of its second.
const asWidget = async (c) => {
  const nonce = Buffer.from(c.salt).toString("hex");
  const parameters = { algorithm: c.algorithm, cost: 1, keyLength: 32, nonce, salt: "", keyPrefix: c.challenge };
  const found = await solveAsWidget({ challenge: { parameters }, counterMode: "string", deriveKey: sha.deriveKey });
  return encode(c, found.counter);
};
const theirs = await createChallenge({ hmacKey: key, maxnumber: 50, expires: new Date(Date.now() + 60000) });
console.log(
  JSON.stringify({
    payload: await solve(challenge),
    widget: await asWidget(challenge),
    ours: await verifySolution(payload, key),
    late: await verifySolution(late, key),
    theirs,
    theirPayload: await solve(theirs),
    params: extractParams(payload),
  }),
);
