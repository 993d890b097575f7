import { type LocalPerson, roleWords } from './people.ts';

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"]/g, (each) => ESCAPED[each] ?? each);

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <meta name="color-scheme" content="light dark">
    <title>${title}</title>
    <style>
      body { font: 1rem system-ui; max-width: 24rem; margin: 4rem auto; padding: 0 1rem; }
      button { display: block; width: 100%; margin: 0.5rem 0; padding: 0.75rem; font: inherit; }
    </style>
  </head>
  <body>
    <h1>${title}</h1>
    ${body}
  </body>
</html>
`;
}

/** The page that takes the place of a password. */
export function choicePage(people: readonly LocalPerson[]): string {
  const buttons = people.map(
    (person) =>
      `<button name="person" value="${escapeHtml(person.id)}">${escapeHtml(person.name)} (${roleWords(person)})</button>`,
  );
  return page('Who are you?', `<form method="post">${buttons.join('')}</form>`);
}

/** `form` is the one of oidc-provider, which the button sends. */
export function signOutPage(form: string): string {
  const button =
    '<button type="submit" form="op.logoutForm" name="logout" value="yes">Sign out</button>';
  return page('Sign out of the local issuer?', form + button);
}

export const signedOutPage = (): string =>
  page('You are signed out', '<p>The local issuer has ended your session.</p>');

export const failedPage = (error: string): string =>
  page('This does not work', `<p>${escapeHtml(error)}</p>`);
