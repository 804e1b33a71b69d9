# The model by the protocol that Copilot speaks with its vendor.
export COPILOT_MODEL="$OPENAI_MODEL" COPILOT_PROVIDER_API_KEY="$OPENAI_API_KEY" COPILOT_PROVIDER_BASE_URL="$OPENAI_BASE_URL"
case $OPENAI_MODEL in
    claude-*) export COPILOT_PROVIDER_TYPE=anthropic COPILOT_PROVIDER_BASE_URL="$ANTHROPIC_BASE_URL" ;;
    gpt-*) export COPILOT_PROVIDER_WIRE_API=responses ;;
    *) export COPILOT_PROVIDER_MAX_PROMPT_TOKENS=128000 ;;
esac
# It does not start where it finds no certificate, also where it asks by plain HTTP: this one trusts nobody.
export NODE_EXTRA_CA_CERTS="$here/settings/roots.pem"
