// What the browser reports by itself of calls that a test has refused.

/**
 * Waits until the browser has reported so many problems that match, and removes these and no others: what else the page did wrong, before or
 * after, is still found at the end.
 */
export const expecting =
  (problems, until) =>
  async (what, pattern, count = 1) => {
    const matches = (text) => pattern.test(text);
    await until(`the browser has reported ${what}`, () => problems.filter(matches).length >= count);
    for (let left = count; left > 0; left--) problems.splice(problems.findIndex(matches), 1);
  };
