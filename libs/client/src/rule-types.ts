/** The values that the API accepts; it refuses others. Null for an optional field is the same as none. */
export interface Bounds {
  /**
   * `url` is text too, and `secret` is text that nobody but its holder may read. `pairs` is an object of texts, `headers`
   * a list of `key` and `value`, `json` an object of any JSON.
   */
  type:
    | 'text'
    | 'url'
    | 'secret'
    | 'time'
    | 'flag'
    | 'number'
    | 'numbers'
    | 'texts'
    | 'pairs'
    | 'headers'
    | 'json'
    | 'object';
  min?: number;
  max?: number;
  /** Characters are code points. */
  minChars?: number;
  maxChars?: number;
  /** A regular expression of JavaScript for the whole value. */
  pattern?: string;
  choices?: readonly string[];
  /** Numbers, or texts, within the bounds that are refused all the same. */
  refused?: readonly (number | string)[];
  minEntries?: number;
  maxEntries?: number;
  /** Of all entries together: of `pairs` and `json` as JSON, of `headers` those of their keys and values. */
  maxBytes?: number;
  /** The rule of each entry of a list. */
  entry?: Bounds;
  /** `key` and `value` of each entry of `pairs` and `headers`, or the fields of an object. */
  parts?: Readonly<Record<string, Bounds>>;
}

/** A field of a request. */
export interface FieldRule extends Bounds {
  /** A field of a method of authentication is required when the webhook gets this method. */
  isRequired?: true;
  /** Given at the creation only; a secret is replaced by a rotation. */
  isFixed?: true;
  /** An update cannot take the field away, although it may be left out at the creation. */
  isKept?: true;
  /** The value of an object without the field, as far as it is the same for all. */
  default?: unknown;
  /** The schema of the object that an id names. */
  owner?: 'Project' | 'App';
  /** The method of authentication to which the field belongs. */
  authMethod?: 'hmac' | 'basic' | 'apiKey' | 'oauth2';
  /** The name of the field within `authMethod` of responses. */
  shownAs?: string;
}
