/** Shown in place of the dashboard: in a checkout the build is not part of it. */
export const NOT_BUILT = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>The dashboard is not built</title>
  </head>
  <body>
    <h1>The dashboard is not built</h1>
    <p>Run <code>npm run dashboard:build</code> and load this page again. <code>npm start</code> does it by itself.</p>
    <p>The API works without it: see <code>/docs</code>.</p>
  </body>
</html>
`;
