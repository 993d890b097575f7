import type { Sent } from './evidence.ts';
import { finding, type Finding } from './finding.ts';

/** The load goes on for eight seconds after the recovery: its last half must be accepted. */
const LAST_MS = 4_000;
/**
 * One of two gateways that accepts nothing leaves a third of the messages: those with a key are repeated until the other
 * one accepts them. A single response may be lost at any time.
 */
const ACCEPTED_SHARE = 0.9;

interface Share {
  accepted: number;
  all: number;
}

function shareSince(sent: readonly Sent[], fromMs: number): Share {
  const since = sent.filter(({ sentAtMs }) => sentAtMs >= fromMs);
  const accepted = since.filter(({ answer }) => answer.kind === 'accepted').length;
  return { accepted, all: since.length };
}

function isEnough({ accepted, all }: Share): boolean {
  return accepted > 0 && accepted >= all * ACCEPTED_SHARE;
}

/** Whether messages are accepted that were sent since then. `sent` is in the order of the responses. */
export function isAccepting(sent: readonly Sent[], fromMs: number): boolean {
  const before = sent.findLastIndex(({ answeredAtMs }) => answeredAtMs < fromMs);
  return isEnough(shareSince(sent.slice(before + 1), fromMs));
}

/** A round in which nothing is accepted shows nothing, and a gateway that never accepts again has not recovered. */
export function findingsOfAcceptance(sent: readonly Sent[]): Finding[] {
  if (!sent.some(({ answer }) => answer.kind === 'accepted')) {
    return finding('nothing accepted', [`${sent.length} messages sent`]);
  }
  const lastMs = sent.reduce((last, { sentAtMs }) => Math.max(last, sentAtMs), 0);
  const share = shareSince(sent, lastMs - LAST_MS);
  const wrong = `${share.accepted} of ${share.all} messages in the last ${LAST_MS / 1_000} s`;
  return finding('not accepting again', isEnough(share) ? [] : [wrong]);
}
