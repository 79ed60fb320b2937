// npm's oidc-provider, as tests want it: its arguments are a port and a redirect URI. Whoever logs in as N is of the group netboot-Ns.
import Provider from "oidc-provider";

const [port, redirect] = process.argv.slice(2);
const provider = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: "netboot-page",
      client_secret: "page/secret+of the tests",
      redirect_uris: [redirect],
      grant_types: ["authorization_code", "refresh_token"],
    },
    {
      client_id: "netboot-cli",
      application_type: "native",
      token_endpoint_auth_method: "none",
      redirect_uris: [],
      response_types: [],
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
    },
  ],
  claims: { openid: ["sub"], groups: ["groups"] },
  clientAuthMethods: ["client_secret_basic", "none"],
  conformIdTokenClaims: false,
  cookies: { keys: ["tests"] },
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, devInteractions: { enabled: true } },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, groups: [`netboot-${id}s`] }) }),
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed("refresh_token"),
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { IdToken: 25, AccessToken: 25, DeviceCode: 60, Session: 600, Grant: 600, Interaction: 600, RefreshToken: 600 },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
