// Two tests that must fail, in the globals of a test file.
"use strict";
const { expect, test } = require("@jest/globals");

const key = Symbol.for("dgm.controls");
const [asserts, raises] = globalThis[key];
delete globalThis[key];

test(asserts, () => expect("this").toBe("that"));
test(raises, () => {
  throw new Error("a test of dgm's own, which must fail");
});
