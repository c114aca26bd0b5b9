// Checks a draw with nothing but docs/FAIRNESS.md: node check.mjs draw.json list.txt [lane number]
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
const [drawFile, listFile, lane, number] = process.argv.slice(2);
const draw = JSON.parse(readFileSync(drawFile)), list = readFileSync(listFile);
const sha256 = (bytes) => createHash("sha256").update(bytes).digest();
const hmac = (key, ...parts) => createHmac("sha256", key).update(Buffer.concat(parts)).digest();
const u64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64BE(BigInt(n)); return b; };
const expect = (what, is, should) => { if (is !== should) { console.log(`${what}: ${is}, not ${should}`); process.exit(1); } };
function position(key, n, number) {
  if (number >= n) return number;
  if (n <= 4096) {
    const hashes = [...Array(n).keys()].map((i) => hmac(key, u64(i)).toString("hex"));
    return hashes.filter((h, i) => h < hashes[number] || (h === hashes[number] && i < number)).length;
  }
  let a = Math.floor(Math.sqrt(n)); while (a * a < n) a++;
  const A = BigInt(a), B = BigInt(Math.ceil(n / a)), F = (round, half) => hmac(key, Buffer.of(round), u64(half)).readBigUInt64BE();
  for (let x = BigInt(number); ;) {
    let l = x / B, r = x % B;
    for (let i = 0; i < 8; i++) if (i % 2 === 0) l = (l + F(i, r)) % A; else r = (r + F(i, l)) % B;
    x = l * B + r; if (x < BigInt(n)) return Number(x);
  }
}
const k = Buffer.from(draw.k, "hex"), seed = hmac(k, Buffer.from(draw.value), u64(draw.n), sha256(list)), keyOf = (name) => hmac(seed, Buffer.from(name));
const place = (name, number) => position(keyOf(name), draw.lanes.find((l) => l.key === name).n, number);
for (const [what, is] of [["commitment", sha256(k)], ["list_hash", sha256(list)], ["seed", seed]]) expect(what, is.toString("hex"), draw[what]);
expect("n", draw.lanes.reduce((sum, l) => sum + l.n, 0), draw.n);
for (const l of draw.lanes) expect(`key of ${l.key}`, keyOf(l.key).toString("hex"), l.lane_key);
for (const v of draw.vectors ?? []) expect(`${v.lane} ${v.number}`, place(v.lane, v.number), v.position);
console.log(lane ? place(lane, Number(number)) : "the draw is right");
