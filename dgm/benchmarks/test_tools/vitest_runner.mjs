// The runner in vitest's workers: adds two tests that must fail to the end of each test file.
import assert from "node:assert";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { VitestTestRunner } from "vitest/runners";

const { watch } = createRequire(import.meta.url)("./support.cjs");
const [asserts, raises] = (process.env.DGM_CONTROLS ?? "").split(" ");
delete process.env.DGM_CONTROLS;
const untouched = watch([assert, assert.strict]);

export default class extends VitestTestRunner {
  async importFile(path, source) {
    const found = await super.importFile(path, source);
    if (source === "collect") {
      test(asserts, () => {
        if (untouched()) expect("this").toBe("that");
      });
      test(raises, () => {
        throw new Error("a test of dgm's own, which must fail");
      });
    }
    return found;
  }
}
