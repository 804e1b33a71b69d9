// The test runner of jest around its own: adds two tests that must fail, and lets them come last.
"use strict";
const circus = require("jest-circus/runner");

const controls = (process.env.DGM_CONTROLS ?? "").split(" ");
const setup = `${__dirname}/jest_controls.js`;

module.exports = async (globalConfig, config, environment, runtime, testPath, ...more) => {
  delete process.env.DGM_CONTROLS;
  environment.global[Symbol.for("dgm.controls")] = controls;
  const own = environment.handleTestEvent?.bind(environment);
  environment.handleTestEvent = async (event, state) => {
    if (event.name === "run_start") {
      for (const list of [state.rootDescribeBlock.children, state.rootDescribeBlock.tests ?? []]) {
        const last = list.filter((each) => controls.includes(each.name));
        list.splice(0, list.length, ...list.filter((each) => !controls.includes(each.name)), ...last);
      }
    }
    await own?.(event, state);
  };
  const widened = { ...config, setupFilesAfterEnv: [...(config.setupFilesAfterEnv ?? []), setup] };
  return circus(globalConfig, widened, environment, runtime, testPath, ...more);
};
