// Prints the digest of every scenario of the module named on the command line, one to a line.
import { readFileSync } from "node:fs";

const [path, scenarios] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path));
for (let scenario = 0; scenario < Number(scenarios); scenario++) {
    const digest = BigInt.asUintN(64, instance.exports.digest_of(scenario));
    console.log(digest.toString(16).padStart(16, "0"));
}
