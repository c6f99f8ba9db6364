// Names that do not exist are found by tsc, which knows what browsers have.
import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    rules: {
      eqeqeq: "error",
      "no-shadow": "error",
      "no-undef": "off",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
