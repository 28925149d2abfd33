// What a host lets a page do, from the metadata of its resource.

const FEATURES = { camera: 'camera', microphone: 'microphone', geolocation: 'geolocation', clipboardWrite: 'clipboard-write' };

/** The content security policy. What is no origin is left out: it could close the policy and open another. */
export function policyOf(csp) {
    const origins = list => (csp?.[list] ?? []).filter(origin => /^(https?|wss?):\/\/(\*\.)?[\w.-]+(:\d+)?$/.test(origin)).join(' ');
    const [connect, resource, frame, base] = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'].map(origins);
    return [
        "default-src 'none'",
        `script-src 'self' 'unsafe-inline' ${resource}`,
        `style-src 'self' 'unsafe-inline' ${resource}`,
        `img-src 'self' data: ${resource}`,
        `media-src 'self' data: ${resource}`,
        csp ? `font-src 'self' ${resource}` : "font-src 'none'",
        csp ? `connect-src 'self' ${connect}` : "connect-src 'none'",
        `frame-src ${frame || "'none'"}`,
        "object-src 'none'",
        `base-uri ${base || "'self'"}`,
        "form-action 'none'"
    ].join('; ');
}

/** The attribute `allow` of a frame. */
export function allowOf(permissions = {}) {
    return Object.keys(permissions).filter(name => name in FEATURES).map(name => FEATURES[name]).join('; ');
}

/** Whether the model or an app may call a tool. */
export function isVisible(tool, party) {
    return tool._meta?.ui?.visibility?.includes(party) ?? true;
}
