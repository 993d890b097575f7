export {
  type RequestHeaders,
  sign,
  type SignedHeaders,
  type SignInput,
  type VerifiedEvent,
  verify,
  type VerifyInput,
  type VerifyOptions,
} from './verify.ts';
export { VerifyError, type VerifyReason } from './verify-error.ts';
