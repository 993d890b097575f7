import { DASHBOARD_PATH, PORTAL_COMPANY_ID } from './addresses.ts';

/** The parts of the address by which somebody arrived. */
interface Arrival {
  /** The token of a link that signs in, or opens a portal. */
  link: string | null;
  /** The token of an invitation, which is used when its person has signed in at the issuer. */
  invitation: string | null;
  /** The code of why a sign-in at the issuer began no session. */
  refusal: string | null;
}

/** Tokens are single-use, so they are taken out of the address before anybody can copy it. */
export const arrival: Readonly<Arrival> = takeArrival();

function takeArrival(): Arrival {
  const page = location.pathname.slice(DASHBOARD_PATH.length);
  const token = location.hash.slice(1);
  const isSignIn = PORTAL_COMPANY_ID === null && page === 'sign-in';
  const isInvitation = PORTAL_COMPANY_ID === null && page === 'invitation';
  const isLink = (PORTAL_COMPANY_ID !== null || isSignIn) && token !== '';
  if (isLink || isInvitation) history.replaceState(null, '', location.pathname + location.search);
  return {
    link: isLink ? token : null,
    invitation: isInvitation && token !== '' ? token : null,
    refusal: isSignIn ? new URLSearchParams(location.search).get('error') : null,
  };
}
