import { isListed, originOf } from '../portal/origin-of.ts';

export interface FrameRequest {
  /** `Sec-Fetch-Dest`: what the browser asks the page for. Browsers send it over https and to loopback. */
  destination: string | undefined;
  /** `Referer`: the page that asked, which is the one around the frame, or one that was in the frame before. */
  referrer: string | undefined;
}

const FRAMES = ['iframe', 'frame', 'embed', 'object'];

/**
 * Returns whether the page is requested for a frame of an origin that is not listed. False when the browser does not
 * name the origin: then it refuses by `frame-ancestors` itself, with a page of its own. A site that leads to the portal
 * within the frame of a listed one must be listed too.
 */
export function isRefusedFrame(
  { destination = '', referrer }: FrameRequest,
  origins: readonly string[],
): boolean {
  if (!FRAMES.includes(destination)) return false;
  if (origins.length === 0) return true;
  const origin = originOf(referrer ?? '');
  return origin !== null && !isListed(origin, origins);
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (each) => ESCAPED[each] ?? each);

/** It may be framed by anyone, so that people see why they do not see the page: it shows nothing of any company. */
export const REFUSED_FRAME_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Sec-Fetch-Dest, Referer',
};

/** The page in place of one that may not be shown in this frame. */
export function refusedFrame(referrer: string | undefined): string {
  const site = escapeHtml(originOf(referrer ?? '') ?? 'The page around this frame');
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <meta name="color-scheme" content="light dark">
    <title>Not in this frame</title>
  </head>
  <body>
    <h1>This page may not be shown in this frame</h1>
    <p><strong>${site}</strong> is not one of the origins that may show it.</p>
    <p>A portal is shown by the origins in the portal settings of its company: an operator adds one with
    <code>PUT /api/v1/portal-settings</code>, or on the page “Projects and apps” of the dashboard. The dashboard itself
    is shown in no frame: open it in a window of its own.</p>
  </body>
</html>
`;
}
